import { describe, expect, it } from "vitest";
import { changedWords, diffLines, pairs, partners } from "../../src/view/diff/hunks";

const text = (...lines: string[]) => `${lines.join("\n")}\n`;
const count = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}`);

describe("a diff's lines", () => {
  it("have the numbers of both sides", () => {
    const { lines } = diffLines(text("a", "b", "c"), text("a", "x", "c"));
    expect(lines.map((line) => [line.kind, line.oldNumber, line.newNumber, line.text])).toEqual([
      ["same", 1, 1, "a"],
      ["removed", 2, null, "b"],
      ["added", null, 2, "x"],
      ["same", 3, 3, "c"],
    ]);
  });

  it("of a new file are all added", () => {
    const made = diffLines("", text("a", "b"));
    expect([made.added, made.removed, made.hunks.length]).toEqual([2, 0, 1]);
  });

  it("of equal texts make no hunk", () => {
    expect(diffLines("a\nb", "a\nb").hunks).toEqual([]);
  });

  it("come in hunks with three lines around each change", () => {
    const old = count(1, 40);
    const now = [...old];
    now[9] = "ten";
    now[29] = "thirty";
    const { hunks } = diffLines(text(...old), text(...now));
    expect(hunks.map((hunk) => [hunk.start, hunk.end])).toEqual([
      [6, 14],
      [27, 35],
    ]);
  });

  it("of changes near each other share a hunk", () => {
    const old = count(1, 20);
    const now = [...old];
    now[4] = "five";
    now[9] = "ten";
    expect(diffLines(text(...old), text(...now)).hunks).toHaveLength(1);
  });

  it("of texts with nothing in common are still shown, quickly", () => {
    const made = diffLines(text("same", ...count(1, 20_000)), text("same", ...count(30_001, 50_000)));
    expect(made.coarse).toBe(true);
    expect([made.added, made.removed]).toEqual([20_000, 20_000]);
    expect(made.lines[0]?.kind).toBe("same");
  });
});

describe("two columns", () => {
  it("put removed beside added and leave the rest empty", () => {
    const rows = pairs(diffLines(text("a", "b", "c", "d"), text("a", "x", "d")).lines);
    expect(rows.map(({ left, right }) => [left?.text ?? null, right?.text ?? null])).toEqual([
      ["a", "a"],
      ["b", "x"],
      ["c", null],
      ["d", "d"],
    ]);
  });
  it("know the partner of a changed line", () => {
    expect([...partners(diffLines(text("a", "b"), text("a", "x")).lines)]).toEqual([
      [1, 2],
      [2, 1],
    ]);
  });
});

describe("changed words", () => {
  it("are marked on both sides", () => {
    const words = changedWords("const a = one;", "const a = two;");
    expect(words?.left.filter((part) => part.changed).map((part) => part.text)).toEqual(["one"]);
    expect(words?.right.filter((part) => part.changed).map((part) => part.text)).toEqual(["two"]);
  });
  it("are not marked where all changed", () => {
    expect(changedWords("alpha beta gamma", "something else entirely")).toBeNull();
  });
});
