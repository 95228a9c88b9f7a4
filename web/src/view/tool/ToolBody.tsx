import type { ContentBlock, JsonValue, ToolContent, ToolLocation } from "../../bridge/events";
import type { Terminal as TerminalState, ToolItem } from "../../model/conversation";
import { CopyButton } from "../CopyButton";
import { Diff } from "../diff";
import { Fold } from "../Fold";
import { CodeBlock } from "../markdown/CodeBlock";
import { languageOfPath } from "../markdown/highlight";
import { Markdown } from "../markdown/Markdown";
import { Block } from "../message/Block";
import { Terminal } from "../terminal";
import { bytes } from "../words";
import { asText, commandOf, exitOf, furtherOutput, isEmpty, pathOf, unfence } from "./input";
import { Locations } from "./Locations";
import styles from "./ToolCard.module.css";

interface Props {
  item: ToolItem;
  terminals: ReadonlyMap<string, TerminalState>;
  cwd?: string | undefined;
}

export function ToolBody({ item, terminals, cwd }: Props) {
  const output = furtherOutput(item.output, item.content);
  const command = item.toolKind === "execute" ? commandOf(item.input) : undefined;
  const printed =
    item.content.some((part) => part.type === "terminal") || (item.toolKind === "execute" && hasText(item.content));
  const running = item.status === "in_progress" || item.status === "pending";
  return (
    <>
      <Locations locations={elsewhere(item)} cwd={cwd} />
      {command !== undefined && !printed ? <Terminal command={command} output="" running={running} /> : null}
      {item.content.map((part, index) => (
        <Content
          key={index}
          part={part}
          item={item}
          terminals={terminals}
          command={index === 0 ? command : undefined}
          cwd={cwd}
        />
      ))}
      {isEmpty(item.input) || isShown(item.input, command) ? null : (
        <Raw name={`${item.key}.input`} label="Input" value={item.input as JsonValue} />
      )}
      {output === undefined ? null : (
        <Raw
          name={`${item.key}.output`}
          label="Output"
          value={output}
          open={item.content.length === 0 || item.status === "failed"}
        />
      )}
      <Exit item={item} terminals={terminals} />
      {item.abandoned && item.content.length === 0 ? (
        <p className={styles.remark}>The turn ended before this call did.</p>
      ) : null}
    </>
  );
}

/** How a command ended, when that is all its output says and no terminal shows it. */
function Exit({ item, terminals }: Props) {
  const exit = exitOf(item.output);
  const shown = item.content.some(
    (part) => part.type === "terminal" && (terminals.get(part.terminalId)?.exit ?? null) !== null,
  );
  return exit === null || exit === "" || shown ? null : <p className={styles.remark}>{exit}</p>;
}

/** The places that no diff under them names anyway. */
function elsewhere({ locations, content }: ToolItem): readonly ToolLocation[] {
  const changed = new Set(content.map((part) => (part.type === "diff" ? part.path : "")));
  return locations.filter(({ path }) => !changed.has(path));
}

/** The command stands above its output already, and there is nothing else. */
function isShown(input: JsonValue | undefined, command: string | undefined): boolean {
  return command !== undefined && input !== null && typeof input === "object" && Object.keys(input).length === 1;
}

function hasText(content: readonly ToolContent[]): boolean {
  return content.some((part) => part.type === "content" && part.content.type === "text");
}

interface ContentProps {
  part: ToolContent;
  item: ToolItem;
  terminals: ReadonlyMap<string, TerminalState>;
  command: string | undefined;
  cwd: string | undefined;
}

function Content({ part, item, terminals, command, cwd }: ContentProps) {
  if (part.type === "diff") return <Diff diff={part} cwd={cwd} />;
  if (part.type === "terminal") {
    const terminal = terminals.get(part.terminalId);
    return (
      <Terminal
        output={terminal?.output ?? ""}
        command={command}
        truncated={terminal?.truncated ?? false}
        exit={terminal?.exit ?? null}
        running={(terminal?.exit ?? null) === null && item.endedAt === 0}
      />
    );
  }
  if (part.type !== "content")
    return <CodeBlock code={JSON.stringify(part, null, 2)} language="json" label="unknown content" />;
  return <BlockContent block={part.content} item={item} command={command} />;
}

/** Longer text is shown like a program's output: its end, and all of it as a file. */
const LONG_TEXT = 20_000;

function BlockContent({ block, item, command }: { block: ContentBlock; item: ToolItem; command: string | undefined }) {
  if (block.type !== "text") return <Block block={block} />;
  const fenced = unfence(block.text);
  const text = fenced?.text ?? block.text;
  if (item.toolKind === "execute" || text.length > LONG_TEXT || text.includes("\u001b[")) {
    return <Terminal output={text} command={command} label="Output" />;
  }
  const failed = item.status === "failed"; // then it is words, not the file
  if (fenced !== null || (item.toolKind === "read" && !failed)) {
    const path = item.locations[0]?.path ?? pathOf(item.input) ?? "";
    return <CodeBlock code={text} language={fenced?.language || (languageOfPath(path) ?? "")} />;
  }
  return (
    <div className={styles.prose} data-failed={failed}>
      <Markdown text={text} />
    </div>
  );
}

function Raw({ name, label, value, open = false }: { name: string; label: string; value: JsonValue; open?: boolean }) {
  const text = asText(value);
  const size = text.length > 2000 ? ` · ${bytes(text.length)}` : "";
  return (
    <Fold
      name={name}
      label={`${label}${size}`}
      open={open}
      aside={<CopyButton text={text} label={`Copy the ${label.toLowerCase()}`} iconOnly />}
    >
      {() =>
        text.length > LONG_TEXT || typeof value === "string" ? (
          <Terminal output={text} label={label} />
        ) : (
          <CodeBlock code={text} language="json" />
        )
      }
    </Fold>
  );
}
