import { expect, test } from "vitest";
import { replaceWord, wantedAt } from "../../src/app/completion";

test.each([
  ["/", 1, "command", ""],
  ["/rea", 4, "command", "rea"],
  ["see @src/a", 10, "file", "src/a"],
  ["@", 1, "file", ""],
  ["(@x", 3, "file", "x"],
])("in %j at %i a %s is being written", (text, cursor, kind, word) => {
  expect(wantedAt(text, cursor)).toMatchObject({ kind, word });
});

test.each([
  ["say /read", 9],
  ["/read x", 7],
  ["me@example.org", 14],
  ["plain", 5],
])("in %j at %i nothing is", (text, cursor) => {
  expect(wantedAt(text, cursor)).toBeNull();
});

test("the word is replaced and the cursor stands behind it", () => {
  const wanted = wantedAt("see @gr now", 7);
  expect(wanted).not.toBeNull();
  if (wanted !== null)
    expect(replaceWord("see @gr now", wanted, "@greeting.py")).toEqual({ text: "see @greeting.py now", cursor: 16 });
});
