/** A record of the audit as text. Agents wrote parts of it: nothing here throws, whatever it is. */

import type { JsonValue } from "../../bridge/events";
import { own, textOf } from "../../model/untrusted";

export interface AuditRecord {
  readonly id: string;
  readonly n: number;
  readonly at: string;
  readonly kind: string;
  readonly [member: string]: JsonValue;
}

export interface ActPath {
  readonly path: string;
  readonly access: string;
  readonly outside: boolean;
}

export interface ActFacts {
  readonly commands: readonly string[];
  readonly paths: readonly ActPath[];
  readonly hosts: readonly string[];
  readonly opaque: string;
}

/** Characters of one text that are drawn; the export has all of it. */
export const LONGEST = 20_000;

const KINDS: Record<string, string> = {
  answer: "answered",
  unmediated: "unmediated",
  tool_begun: "tool began",
  tool_ended: "tool ended",
};

export type Tone = "ok" | "bad" | "warn" | "plain";

/** The word that a record is marked with. */
export function wordOf(record: AuditRecord): { word: string; tone: Tone } {
  const decision = text(record.decision);
  if (record.kind === "decision" || record.kind === "answer") {
    if (decision === "allow") return { word: record.kind === "answer" ? "allowed" : "allow", tone: "ok" };
    if (decision === "deny") return { word: record.kind === "answer" ? "rejected" : "deny", tone: "bad" };
    if (decision === "ask") return { word: "ask", tone: "warn" };
  }
  const word = own(KINDS, record.kind) ?? record.kind.replaceAll("_", " ");
  if (record.unmediated === true) return { word: `${word}, unmediated`, tone: "warn" };
  return { word, tone: record.kind === "unmediated" ? "warn" : "plain" };
}

/** By whom: the rule, be it one that a client answers by, else the person. */
export function whoOf(record: AuditRecord): string {
  const by = text(record.by);
  return visible(by === "" || by === "user" ? text(record.identity) || by : by);
}

/** What it is about, in one line: the commands of an act, else its paths or hosts, else its title. */
export function aboutOf(record: AuditRecord): string {
  const { commands, paths, hosts } = actOf(record.act);
  const told = commands.length > 0 ? commands : paths.length > 0 ? paths.map(({ path }) => path) : hosts;
  if (told.length > 0) return told.join("; ").slice(0, 300);
  for (const name of ["title", "text", "name", "address", "mode", "path", "call"]) {
    if (text(record[name]) !== "") return visible(text(record[name]).slice(0, 300));
  }
  return "";
}

/** The facts of an act; files and hosts of its commands stand beside the commands. */
export function actOf(act: JsonValue | undefined): ActFacts {
  const { commands, paths, hosts, opaque } = members(act);
  const parts = [...list(commands).map(members), { paths: paths ?? null, hosts: hosts ?? null }];
  return {
    commands: list(commands).map(commandText),
    paths: parts.flatMap((part) =>
      list(part.paths).map((path) => {
        const told = members(path);
        return { path: visible(textOf(told.path)), access: textOf(told.access), outside: told.outside === true };
      }),
    ),
    hosts: [...new Set(parts.flatMap((part) => list(part.hosts).map((host) => visible(textOf(host)))))],
    opaque: visible(text(opaque)),
  };
}

/** With its variables before it and its redirections after it. */
function commandText(command: JsonValue): string {
  const { env, words, redirects } = members(command);
  const before = Object.entries(members(env)).map(([name, value]) => `${name}=${textOf(value)}`);
  return visible([...before, ...[...list(words), ...list(redirects)].map((word) => textOf(word))].join(" "));
}

/** A rule as it stands in a file: one key per line. */
export function ruleText(rule: JsonValue | undefined): string {
  return Object.entries(members(rule))
    .map(([key, value]) => visible(`${key} = ${JSON.stringify(value)}`))
    .join("\n");
}

/** The members that are no part of the act, the rule or the chain, as lines. */
export function factsOf(record: AuditRecord): [string, string][] {
  const shown = Object.entries(record).filter(([name, value]) => !APART.has(name) && value !== null && value !== "");
  return shown.map(([name, value]) => [own(NAMES, name) ?? name, visible(textOf(value).slice(0, LONGEST))]);
}

const APART = new Set(["id", "n", "at", "kind", "prev", "hash", "act", "rule", "sig"]);
const NAMES: Record<string, string> = { policy: "hash of the rules", cwd: "folder", identity: "person" };

/** Characters that are not seen, or turn the order of the others around, as their numbers. */
export function visible(words: string): string {
  return words.replace(/[^\P{C}\n\t]/gu, (one) => `⟨U+${hex(one)}⟩`);
}

function hex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}

export function members(value: JsonValue | undefined): { readonly [key: string]: JsonValue | undefined } {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

function list(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function text(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

const MOMENT = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** "18 Nov, 03:31:02", in this browser's place. */
export function moment(stamp: string): string {
  const at = new Date(stamp);
  return Number.isNaN(at.getTime()) ? stamp : MOMENT.format(at);
}

/** With the year and the zone, for what is proved. */
export function exactly(stamp: string): string {
  const at = new Date(stamp);
  return Number.isNaN(at.getTime()) ? stamp : at.toLocaleString([], { dateStyle: "medium", timeStyle: "long" });
}
