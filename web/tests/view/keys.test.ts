// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { choices, chosen, isTyping } from "../../src/view/question/keys";

const option = (optionId: string, kind: string) => ({ optionId, name: optionId, kind });
const keys = (...kinds: string[]) => choices(kinds.map((kind, index) => option(`o${index}`, kind))).map((choice) => choice.key);

describe("the keys of a question", () => {
  it("are letters for the first of each kind", () => expect(keys("allow_once", "allow_always", "reject_once")).toEqual(["y", "a", "n"]));
  it("are digits for the others", () => expect(keys("allow_always", "allow_always", "other")).toEqual(["a", "2", "3"]));
  it("say no once where that can be said", () => expect(keys("reject_always", "reject_once")).toEqual(["1", "n"]));
  it("say no for good where nothing else can be said", () => expect(keys("allow_once", "reject_always")).toEqual(["y", "n"]));
  it("end with nine", () => expect(keys(...Array.from({ length: 10 }, () => "other")).at(-1)).toBe(""));
  it("find their option, in capitals too, and by digit", () => {
    const all = choices([option("yes", "allow_once"), option("no", "reject_once")]);
    expect(["Y", "n", "2", "x", ""].map((key) => chosen(all, key)?.option.optionId)).toEqual(["yes", "no", "no", undefined, undefined]);
  });
});

it.each([["textarea", "", true], ["input", "text", true], ["input", "checkbox", false], ["select", "", true], ["button", "", false], ["div", "", false]])(
  "a letter pressed in a %s (%s) is text: %s",
  (tag, type, typing) => {
    const element = document.createElement(tag);
    if (type !== "") element.setAttribute("type", type);
    expect(isTyping(element)).toBe(typing);
  },
);
