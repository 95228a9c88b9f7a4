import { describe, expect, it } from "vitest";
import { applySgr, needsEmulator, paletteColour, parseAnsi, PLAIN } from "../../src/view/terminal/ansi";
import { emulate } from "../../src/view/terminal/emulator";

const texts = (output: string) => parseAnsi(output).map((line) => line.map((span) => span.text).join(""));

describe("coloured output", () => {
  it("becomes lines of styled text", () => {
    expect(parseAnsi("\u001b[1;31mred\u001b[0m plain\nnext")).toEqual([
      [
        { text: "red", style: { ...PLAIN, fg: 1, bold: true } },
        { text: " plain", style: null },
      ],
      [{ text: "next", style: null }],
    ]);
  });
  it("keeps a colour over the end of a line", () => {
    expect(parseAnsi("\u001b[32ma\nb")[1]).toEqual([{ text: "b", style: { ...PLAIN, fg: 2 } }]);
  });
  it.each([
    ["bright colours", "91", { fg: 9 }],
    ["256 colours", "38;5;196", { fg: "rgb(255 0 0)" }],
    ["true colour", "48;2;1;2;3", { bg: "rgb(1 2 3)" }],
    ["true colour with colons", "38:2:1:2:3", { fg: "rgb(1 2 3)" }],
    ["inverse", "7", { inverse: true }],
  ])("knows %s", (_, code, style) => expect(applySgr(PLAIN, code)).toEqual({ ...PLAIN, ...style }));
  it("is plain again after a reset", () => expect(applySgr({ ...PLAIN, bold: true }, "")).toBe(PLAIN));
  it("loses titles, links and control characters, and no text", () => {
    expect(texts("\u001b]0;title\u0007a\u001b]8;;https://x\u001b\\link\u001b]8;;\u001b\\\u0000b\u001b(B")).toEqual([
      "alinkb",
    ]);
  });
  it("cuts off a sequence that is not complete", () => expect(texts("abc\u001b[3")).toEqual(["abc"]));
  it("reads CRLF as one line end", () => expect(texts("a\r\nb\r\n")).toEqual(["a", "b"]));
  it("ignores colours that do not exist", () => expect(paletteColour(999)).toBeNull());
});

describe("output that moves the cursor", () => {
  it.each([
    ["10%\r20%", true],
    ["\u001b[2J", true],
    ["a\bb", true],
    ["a\r\nb", false],
    ["\u001b[31mx\u001b[K\n", false],
  ])("%j needs the emulator: %s", (output, needed) => expect(needsEmulator(output)).toBe(needed));

  it("is shown as it stands in the end", async () => {
    const lines = await emulate("10%\r20%\r\u001b[32m100%\u001b[0m\nup\u001b[1A\r\u001b[2Kdone\n\n");
    expect(lines.map((line) => line.map((span) => span.text).join(""))).toEqual(["done", "up"]);
  });
  it("keeps its colours and joins what was only wrapped", async () => {
    const lines = await emulate(`\u001b[35m${"x".repeat(300)}\u001b[0m`);
    expect(lines).toEqual([[{ text: "x".repeat(300), style: { ...PLAIN, fg: 5 } }]]);
  });
});
