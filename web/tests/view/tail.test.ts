import { describe, expect, it } from "vitest";
import { countLines, tailOf } from "../../src/view/terminal/tail";

describe("the end of long output", () => {
  it("is all of it when it is short", () => {
    expect(tailOf("a\nb\n")).toEqual({ text: "a\nb\n", whole: true, shownLines: 2, lines: 2 });
    expect(tailOf("")).toEqual({ text: "", whole: true, shownLines: 0, lines: 0 });
  });
  it("is the last lines", () => {
    expect(tailOf("1\n2\n3\n4\n", 2)).toEqual({ text: "3\n4\n", whole: false, shownLines: 2, lines: 4 });
    expect(tailOf("1\n2\n3\n4", 3)).toEqual({ text: "2\n3\n4", whole: false, shownLines: 3, lines: 4 });
  });
  it("begins at a line's start when it is cut by length", () => {
    expect(tailOf("aaaa\nbbbb\ncccc\n", 100, 12)).toEqual({
      text: "bbbb\ncccc\n",
      whole: false,
      shownLines: 2,
      lines: 3,
    });
  });
  it("is the end of a line that is too long by itself", () => {
    expect(tailOf("x".repeat(100), 10, 8)).toEqual({ text: "x".repeat(8), whole: false, shownLines: 1, lines: 1 });
  });
  it("of 5 MB is found at once", () => {
    const output = "0123456789012345678901234567890123456789012345678\n".repeat(100_000);
    const started = performance.now();
    expect(tailOf(output)).toMatchObject({ whole: false, shownLines: 1_500, lines: 100_000 });
    expect(performance.now() - started).toBeLessThan(500);
  });
  it("counts lines", () => expect([countLines("a"), countLines("a\n"), countLines("a\n\nb")]).toEqual([1, 1, 3]));
});
