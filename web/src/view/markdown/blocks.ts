/**
 * Splits Markdown into its top-level blocks, so that a growing message renders only its last one again.
 *
 * The rules are coarser than CommonMark's on purpose: a block may hold several constructs, but no construct
 * that reads on after a blank line (a list, a fence, indented code) is ever cut in two.
 */

export interface Blocks {
  readonly source: string;
  /** Joined they are the source again. */
  readonly blocks: readonly string[];
}

export const NO_BLOCKS: Blocks = { source: "", blocks: [] };

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const INNER_FENCE = /^\s*(?:[-+*]|\d{1,9}[.)])?\s*(`{3,}|~{3,})/;
const LIST = /^ {0,3}(?:[-+*]|\d{1,9}[.)])(?:\s|$)/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const HEADING = /^ {0,3}#{1,6}(?:\s|$)/;

type Kind = "none" | "plain" | "list" | "fence" | "indented";

/** The blocks of `source`; what `before` already cut is not read again when `source` continues it. */
export function splitBlocks(source: string, before: Blocks = NO_BLOCKS): Blocks {
  if (source === before.source) return before;
  const grows = before.source.length > 0 && source.startsWith(before.source);
  // The line that was last then may have been incomplete: the boundary that it made is decided anew.
  const kept = grows ? before.blocks.slice(0, -2) : [];
  const start = kept.reduce((length, block) => length + block.length, 0);
  return { source, blocks: [...kept, ...cut(source.slice(start))] };
}

function cut(source: string): string[] {
  const blocks: string[] = [];
  let current = "";
  let kind: Kind = "none";
  let fence = "";
  let blank = false;

  const flush = () => {
    if (current !== "") blocks.push(current);
    current = "";
    kind = "none";
    blank = false;
  };

  for (const line of linesOf(source)) {
    const text = line.trimEnd();
    if (fence !== "") {
      current += line;
      if (closes(text, fence)) {
        fence = "";
        if (kind === "fence") flush();
      }
      continue;
    }
    if (text === "") {
      current += line;
      blank = kind !== "none";
      continue;
    }
    if (blank && !continues(kind, line, text)) flush();
    else if (!blank && kind === "plain" && (FENCE.test(text) || HEADING.test(text))) flush();
    if (kind === "none") {
      kind = kindOf(line, text);
      // Blank lines at the start belong to the first block.
    }
    current += line;
    blank = false;
    const opened = kind === "list" ? INNER_FENCE.exec(text) : FENCE.exec(text);
    if (opened?.[1] !== undefined && opensFence(text, opened[1])) fence = opened[1];
    else if (kind === "plain" && HEADING.test(text)) flush();
  }
  flush();
  return blocks;
}

function kindOf(line: string, text: string): Kind {
  if (FENCE.test(text)) return "fence";
  if (LIST.test(line) && !RULE.test(text)) return "list";
  return /^(?: {4}|\t)/.test(line) ? "indented" : "plain";
}

/** After a blank line, does this line belong to the block before it? */
function continues(kind: Kind, line: string, text: string): boolean {
  if (kind === "list") return /^(?: {2}|\t)/.test(line) || (LIST.test(line) && !RULE.test(text));
  return kind === "indented" && /^(?: {4}|\t)/.test(line);
}

function opensFence(text: string, marks: string): boolean {
  return !(marks.startsWith("`") && text.slice(text.indexOf(marks) + marks.length).includes("`"));
}

function closes(text: string, fence: string): boolean {
  const line = text.trim();
  return line.length >= fence.length && line === fence.charAt(0).repeat(line.length);
}

function* linesOf(source: string): Generator<string> {
  let from = 0;
  while (from < source.length) {
    const end = source.indexOf("\n", from);
    const to = end === -1 ? source.length : end + 1;
    yield source.slice(from, to);
    from = to;
  }
}

export interface Fence {
  readonly language: string;
  readonly code: string;
}

/** What a block that is one fence holds; null for every other block. An unclosed fence reads to its end. */
export function readFence(block: string): Fence | null {
  const body = block.replace(/^\n+/, "");
  const end = body.indexOf("\n");
  const head = FENCE.exec((end === -1 ? body : body.slice(0, end)).trimEnd());
  if (head?.[1] === undefined || !opensFence(head[0], head[1])) return null;
  let code = end === -1 ? "" : body.slice(end + 1).trimEnd();
  const last = code.lastIndexOf("\n");
  if (closes(code.slice(last + 1), head[1])) code = last === -1 ? "" : code.slice(0, last);
  return { language: (head[2] ?? "").trim().split(/[\s{,]/)[0] ?? "", code };
}
