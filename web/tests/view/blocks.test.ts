import { describe, expect, it } from "vitest";
import { readFence, splitBlocks, type Blocks, NO_BLOCKS } from "../../src/view/markdown/blocks";

const cut = (source: string) => splitBlocks(source).blocks;

describe("splitting Markdown into blocks", () => {
  it.each([
    ["paragraphs at blank lines", "one\ntwo\n\nthree", ["one\ntwo\n\n", "three"]],
    ["a heading from what follows it", "# Title\ntext", ["# Title\n", "text"]],
    ["a fence from the text around it", "text\n```py\na\n\nb\n```\nmore", ["text\n", "```py\na\n\nb\n```\n", "more"]],
    ["nothing inside a fence that is not closed", "```\na\n\n# b\n\n- c", ["```\na\n\n# b\n\n- c"]],
    ["no list at its blank lines", "- a\n\n- b\n\n  more of b\n\nend", ["- a\n\n- b\n\n  more of b\n\n", "end"]],
    ["no fence inside a list", "- a\n  ```\n  x\n\n  y\n  ```\n\nend", ["- a\n  ```\n  x\n\n  y\n  ```\n\n", "end"]],
    ["a rule after a list", "- a\n\n---\n\nb", ["- a\n\n", "---\n\n", "b"]],
    ["no indented code", "    a\n\n    b\n\nc", ["    a\n\n    b\n\n", "c"]],
    ["a table as one", "| a | b |\n|---|---|\n| 1 | 2 |\n\nend", ["| a | b |\n|---|---|\n| 1 | 2 |\n\n", "end"]],
    ["a longer fence around a shorter one", "````\n```\n````\nx", ["````\n```\n````\n", "x"]],
    [
      "no inline code that looks like a fence",
      "```not a fence``` text\n\nmore",
      ["```not a fence``` text\n\n", "more"],
    ],
  ])("cuts %s", (_, source, blocks) => {
    expect(cut(source)).toEqual(blocks);
    expect(cut(source).join("")).toBe(source);
  });

  it("comes to the same blocks letter by letter as at once", () => {
    const source =
      "# T\n\n- a\n\n- b\n\n---\n\ntext *x*\n```js\nlet a;\n\nlet b;\n```\nafter\n\n1. x\n\n   y\n\n> q\n\n    code\n\n    more";
    let grown: Blocks = NO_BLOCKS;
    for (let end = 1; end <= source.length; end++) {
      grown = splitBlocks(source.slice(0, end), grown);
      expect(grown.blocks).toEqual(cut(source.slice(0, end)));
    }
  });

  it("keeps the finished blocks when the text grows", () => {
    const first = splitBlocks("one\n\ntwo\n\nthree\n\nfour");
    const second = splitBlocks("one\n\ntwo\n\nthree\n\nfour and more", first);
    expect(second.blocks.slice(0, 3)).toEqual(first.blocks.slice(0, 3));
    expect(second.blocks.at(-1)).toBe("four and more");
  });

  it("starts anew when the text is another one", () => {
    expect(splitBlocks("x\n\ny", splitBlocks("a\n\nb")).blocks).toEqual(["x\n\n", "y"]);
  });
});

describe("reading a fence", () => {
  it("gives language and code", () => {
    expect(readFence("```ts title=x\nlet a;\n```\n")).toEqual({ language: "ts", code: "let a;" });
  });
  it("reads one that is not closed to its end", () => {
    expect(readFence("~~~\na\nb")).toEqual({ language: "", code: "a\nb" });
  });
  it("knows an empty one", () => {
    expect(readFence("```py\n```")).toEqual({ language: "py", code: "" });
    expect(readFence("```py")).toEqual({ language: "py", code: "" });
  });
  it("is null for anything else", () => {
    expect(readFence("text\n```\n")).toBeNull();
  });
});
