import { expect, it } from "vitest";
import { overlay, tokensByLine } from "../../src/view/diff/tokens";

it("reads the highlighter's spans line by line", () => {
  expect(tokensByLine('<span class="k">a &lt;\nb</span> &amp;')).toEqual([
    [{ text: "a <", className: "k" }],
    [
      { text: "b", className: "k" },
      { text: " &", className: "" },
    ],
  ]);
});

it("reads spans inside spans", () => {
  expect(tokensByLine('<span class="s">x<span class="n">1</span>y</span>')[0]?.map((token) => token.className)).toEqual(
    ["s", "s n", "s"],
  );
});

it("lays changed words over colours", () => {
  const tokens = [
    { text: "return", className: "k" },
    { text: " len(x)", className: "" },
  ];
  const words = [
    { text: "return le", changed: false },
    { text: "n(x)", changed: true },
  ];
  expect(overlay(tokens, words).map((piece) => [piece.text, piece.className, piece.changed])).toEqual([
    ["return", "k", false],
    [" le", "", false],
    ["n(x)", "", true],
  ]);
});
