/** A few lines of what came out of a call, for a card that is folded. */

import type { Terminal, ToolItem } from "../../model/conversation";
import { parseAnsi } from "../terminal/ansi";
import { countLines, tailOf } from "../terminal/tail";
import { unfence } from "./input";

const LINES = 4;
/** More than these lines could show, less than what would take long to read colours out of. */
const CHARACTERS = 4_000;

export interface Peek {
  readonly lines: readonly string[];
  /** A command's end says how it went; what was read or found begins with what matters. */
  readonly from: "begin" | "end";
  /** How many lines come after those of a beginning. */
  readonly more: number;
}

const NOTHING: Peek = { lines: [], from: "end", more: 0 };
const BEGINNINGS = new Set(["read", "search", "fetch"]);

/** Without colours; nothing of a call that neither prints nor reads. */
export function peek(
  { toolKind, content }: Pick<ToolItem, "toolKind" | "content">,
  terminals: ReadonlyMap<string, Terminal>,
): Peek {
  const printed = content.flatMap((part) => {
    if (part.type === "terminal") return [terminals.get(part.terminalId)?.output ?? ""];
    const wanted = toolKind === "execute" || BEGINNINGS.has(toolKind);
    return part.type === "content" && part.content.type === "text" && wanted
      ? [unfence(part.content.text)?.text ?? part.content.text]
      : [];
  });
  return BEGINNINGS.has(toolKind) ? begin(printed[0] ?? "") : end(printed.at(-1) ?? "");
}

function end(output: string): Peek {
  const lines = plain(tailOf(output.slice(-CHARACTERS).trimEnd(), LINES).text);
  return lines.some((line) => line.trim() !== "") ? { lines, from: "end", more: 0 } : NOTHING;
}

function begin(text: string): Peek {
  const whole = text.replace(/^\s*\n/, "");
  const lines = plain(whole.slice(0, CHARACTERS).split("\n", LINES).join("\n").trimEnd());
  if (lines.every((line) => line.trim() === "")) return NOTHING;
  return { lines, from: "begin", more: Math.max(0, countLines(whole) - LINES) };
}

function plain(text: string): string[] {
  return parseAnsi(text).map((line) => line.map((span) => span.text).join(""));
}
