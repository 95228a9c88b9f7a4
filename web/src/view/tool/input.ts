/** What a tool call is about, read from its raw input: agents name the same things differently. */

import type { JsonValue, ToolContent } from "../../bridge/events";

const COMMAND_KEYS = ["command", "cmd", "script"];
const PATH_KEYS = ["path", "file_path", "filePath", "abs_path", "absolute_path", "filename", "notebook_path"];
const ADDRESS_KEYS = ["url", "uri"];

function field(input: JsonValue | undefined, keys: readonly string[]): JsonValue | undefined {
  if (input === null || typeof input !== "object" || Array.isArray(input)) return undefined;
  const key = keys.find((name) => input[name] !== undefined && input[name] !== null);
  return key === undefined ? undefined : input[key];
}

/** The command line, if it is one. */
export function commandOf(input: JsonValue | undefined): string | undefined {
  const value = field(input, COMMAND_KEYS);
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((part) => typeof part === "string")) {
    // ["bash", "-lc", "..."]: what matters is the script.
    if (value.length === 3 && /^-\w*c$/.test(value[1] ?? "")) return value[2];
    return value.map(quoted).join(" ");
  }
  return undefined;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function pathOf(input: JsonValue | undefined): string | undefined {
  const value = field(input, PATH_KEYS);
  return typeof value === "string" ? value : undefined;
}

export function addressOf(input: JsonValue | undefined): string | undefined {
  const value = field(input, ADDRESS_KEYS);
  return typeof value === "string" ? value : undefined;
}

/** Input that says nothing: most agents send {} for a call without arguments. */
export function isEmpty(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

export function asText(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** What the output says beyond the content, or undefined when it says the same again. */
export function furtherOutput(output: JsonValue | undefined, content: readonly ToolContent[]): JsonValue | undefined {
  if (isEmpty(output) || exitOf(output) !== null) return undefined;
  const said = content.map((part) =>
    part.type === "content" && part.content.type === "text" ? part.content.text.trim() : "",
  );
  return typeof output === "string" && said.includes(output.trim()) ? undefined : output;
}

const CODE_KEYS = ["exit_code", "exitCode", "exit_status", "exitStatus"];
const TIMEOUT_KEYS = ["timedOut", "timed_out"];
const EXIT_KEYS: ReadonlySet<string> = new Set([...CODE_KEYS, ...TIMEOUT_KEYS, "signal", "durationMs", "duration_ms"]);

/** How a command ended, in words, of an output that says nothing else: "" when it ended well, null of any other output. */
export function exitOf(output: JsonValue | undefined): string | null {
  if (output === undefined || output === null || typeof output !== "object" || Array.isArray(output)) return null;
  const told = Object.keys(output).filter((key) => !isEmpty(output[key]));
  const code = field(output, CODE_KEYS);
  const inner = typeof code === "object" ? exitOf(code) : "";
  if (told.length === 0 || !told.every((key) => EXIT_KEYS.has(key)) || inner === null) return null;
  const signal = field(output, ["signal"]);
  if (field(output, TIMEOUT_KEYS) === true) return "Timed out";
  if (typeof signal === "string") return `Ended by ${signal}`;
  if (typeof code === "object") return inner;
  return code === undefined || code === 0 ? "" : `Exit code ${String(code)}`;
}

/** Fenced whole, as some adapters wrap what a program printed: the text inside. */
export function unfence(text: string): { text: string; language: string } | null {
  const match = /^\s*(`{3,})([^\n`]*)\n([\s\S]*?)\n?\1\s*$/.exec(text);
  return match === null ? null : { text: match[3] ?? "", language: (match[2] ?? "").trim() };
}
