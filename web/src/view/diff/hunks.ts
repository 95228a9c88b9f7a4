/** Two texts to the rows of a diff: lines, hunks, what is folded between them, and the words that changed. */

import { diffArrays, diffWordsWithSpace } from "diff";

export interface Line {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
  /** From 1; null on the side where the line is not. */
  readonly oldNumber: number | null;
  readonly newNumber: number | null;
}

export interface Hunk {
  /** Half-open range of `lines`. */
  readonly start: number;
  readonly end: number;
  readonly added: number;
  readonly removed: number;
}

export interface LineDiff {
  readonly lines: readonly Line[];
  readonly hunks: readonly Hunk[];
  readonly added: number;
  readonly removed: number;
  /** The texts differ too much to compare line by line in good time: shown as removed and added whole. */
  readonly coarse: boolean;
}

export interface Pair {
  readonly left: Line | null;
  readonly right: Line | null;
}

export interface Segment {
  readonly text: string;
  readonly changed: boolean;
}

const CONTEXT = 3;
/** Fewer lines than this are shown rather than folded: the line that offers them is as tall. */
const FOLDED = 5;
const MAX_EDITS = 4_000;
const TIME_LIMIT = 150; // ms; beyond it the page would stutter

function splitLines(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export function diffLines(before: string, after: string, context = CONTEXT): LineDiff {
  const old = splitLines(before);
  const now = splitLines(after);
  const changes =
    old.length === 0 || now.length === 0
      ? undefined
      : diffArrays(old, now, { maxEditLength: MAX_EDITS, timeout: TIME_LIMIT });
  const coarse = changes === undefined && old.length > 0 && now.length > 0;
  const lines = changes === undefined ? replaced(old, now) : numbered(changes);
  const hunks = hunksOf(lines, context);
  return {
    lines,
    hunks,
    coarse,
    added: hunks.reduce((sum, hunk) => sum + hunk.added, 0),
    removed: hunks.reduce((sum, hunk) => sum + hunk.removed, 0),
  };
}

function numbered(changes: readonly { added?: boolean; removed?: boolean; value: readonly string[] }[]): Line[] {
  const lines: Line[] = [];
  let oldNumber = 1;
  let newNumber = 1;
  for (const { added, removed, value } of changes) {
    for (const text of value) {
      if (added) lines.push({ kind: "added", text, oldNumber: null, newNumber: newNumber++ });
      else if (removed) lines.push({ kind: "removed", text, oldNumber: oldNumber++, newNumber: null });
      else lines.push({ kind: "same", text, oldNumber: oldNumber++, newNumber: newNumber++ });
    }
  }
  return lines;
}

/** What is equal at both ends stays; the rest is removed and added whole. */
function replaced(old: readonly string[], now: readonly string[]): Line[] {
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < shorter - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++;
  const parts = [
    { value: old.slice(0, head) },
    { value: old.slice(head, old.length - tail), removed: true },
    { value: now.slice(head, now.length - tail), added: true },
    { value: old.slice(old.length - tail) },
  ];
  return numbered(parts);
}

function hunksOf(lines: readonly Line[], context: number): Hunk[] {
  const hunks: { start: number; end: number; added: number; removed: number }[] = [];
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    let hunk = hunks.at(-1);
    const start = index - context;
    if (hunk === undefined || start - hunk.end >= FOLDED) {
      hunk = { start: start < FOLDED ? 0 : start, end: 0, added: 0, removed: 0 };
      hunks.push(hunk);
    }
    const end = index + 1 + context;
    hunk.end = lines.length - end < FOLDED ? lines.length : end;
    hunk[line.kind === "added" ? "added" : "removed"]++;
  });
  return hunks;
}

/** Rows for two columns: each run of removed lines beside the run of added lines that follows it. */
export function pairs(lines: readonly Line[]): Pair[] {
  const rows: Pair[] = [];
  let index = 0;
  while (index < lines.length) {
    const line = lines[index] as Line;
    if (line.kind === "same") {
      rows.push({ left: line, right: line });
      index++;
      continue;
    }
    const removed = run(lines, index, "removed");
    const added = run(lines, index + removed.length, "added");
    for (let row = 0; row < Math.max(removed.length, added.length); row++) {
      rows.push({ left: removed[row] ?? null, right: added[row] ?? null });
    }
    index += removed.length + added.length;
  }
  return rows;
}

function run(lines: readonly Line[], from: number, kind: Line["kind"]): Line[] {
  let to = from;
  while (to < lines.length && lines[to]?.kind === kind) to++;
  return lines.slice(from, to);
}

const LONGEST_WORDED = 600;
/** Of two lines that share less than this, the changed words would be nearly all: nothing is marked then. */
const LEAST_SHARED = 0.35;

/** The words that changed between two lines; null where marking them would not help. */
export function changedWords(before: string, after: string): { left: Segment[]; right: Segment[] } | null {
  if (before.length + after.length > LONGEST_WORDED || before.trim() === "" || after.trim() === "") return null;
  const changes = diffWordsWithSpace(before, after);
  const shared = changes.reduce(
    (sum, { added, removed, value }) => (added || removed ? sum : sum + value.trim().length),
    0,
  );
  if (shared < LEAST_SHARED * Math.max(before.trim().length, after.trim().length)) return null;
  const side = (skip: "added" | "removed", mark: "added" | "removed"): Segment[] =>
    changes.filter((change) => !change[skip]).map((change) => ({ text: change.value, changed: change[mark] === true }));
  return { left: side("added", "removed"), right: side("removed", "added") };
}

/** For one column: the partner of every line that has one, by index into `lines`. */
export function partners(lines: readonly Line[]): Map<number, number> {
  const found = new Map<number, number>();
  let index = 0;
  while (index < lines.length) {
    const removed = run(lines, index, "removed").length;
    const added = run(lines, index + removed, "added").length;
    for (let row = 0; row < Math.min(removed, added); row++) {
      found.set(index + row, index + removed + row);
      found.set(index + removed + row, index + row);
    }
    index += Math.max(1, removed + added);
  }
  return found;
}
