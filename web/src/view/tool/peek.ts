/** The end of what a command printed, for a card that is folded. */

import type { Terminal, ToolItem } from "../../model/conversation";
import { parseAnsi } from "../terminal/ansi";
import { tailOf } from "../terminal/tail";
import { unfence } from "./input";

const LINES = 4;
/** More than these lines could show, less than what would take long to read colours out of. */
const CHARACTERS = 4_000;

/** Its last lines without colours; none for a call that is no command. */
export function lastLines({ toolKind, content }: Pick<ToolItem, "toolKind" | "content">, terminals: ReadonlyMap<string, Terminal>): string[] {
  const printed = content.flatMap((part) => {
    if (part.type === "terminal") return [terminals.get(part.terminalId)?.output ?? ""];
    return part.type === "content" && part.content.type === "text" && toolKind === "execute" ? [unfence(part.content.text)?.text ?? part.content.text] : [];
  });
  const output = (printed.at(-1) ?? "").slice(-CHARACTERS).trimEnd();
  const lines = parseAnsi(tailOf(output, LINES).text).map((line) => line.map((span) => span.text).join(""));
  return lines.some((line) => line.trim() !== "") ? lines : [];
}
