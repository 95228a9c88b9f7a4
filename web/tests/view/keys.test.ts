import { describe, expect, it } from "vitest";
import { choices, chosen } from "../../src/view/question/keys";

const option = (optionId: string, kind: string) => ({ optionId, name: optionId, kind });
const keys = (...kinds: string[]) =>
  choices(kinds.map((kind, index) => option(`o${index}`, kind))).map((choice) => choice.key);

describe("the keys of a question", () => {
  it("are letters for yes and no, once", () =>
    expect(keys("allow_once", "allow_always", "reject_once")).toEqual(["y", "", "n"]));
  it("belong to the first of a kind", () =>
    expect(keys("allow_once", "allow_once", "reject_once", "reject_once")).toEqual(["y", "", "n", ""]));
  it("never answer for longer than once", () =>
    expect(keys("allow_always", "reject_always", "other")).toEqual(["", "", ""]));
  it("find their option, in capitals too, and digits find none", () => {
    const all = choices([option("yes", "allow_once"), option("always", "allow_always"), option("no", "reject_once")]);
    expect(["Y", "n", "a", "2", "x", ""].map((key) => chosen(all, key)?.option.optionId)).toEqual([
      "yes",
      "no",
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});
