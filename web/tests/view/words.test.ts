import { describe, expect, it } from "vitest";
import { endOf } from "../../src/view/message/ends";
import { mentions } from "../../src/view/message/mentions";
import { commandOf, furtherOutput, isEmpty, pathOf, unfence } from "../../src/view/tool/input";
import { bytes, duration, elapsed, plural, shortPath } from "../../src/view/words";

describe("words for numbers", () => {
  it.each([[400, "0.4 s"], [12_300, "12 s"], [59_900, "1 min"], [65_000, "1 min 5 s"], [7_800_000, "2 h 10 min"], [-5, "0.0 s"]])(
    "%i ms took %s", (time, words) => expect(duration(time)).toBe(words));
  it("count whole seconds while it runs", () => expect([elapsed(3_900), elapsed(61_000)]).toEqual(["3 s", "1 min 1 s"]));
  it("are short", () => expect([bytes(12), bytes(2048), bytes(5_242_880), plural(1, "line"), plural(1500, "line")]).toEqual(["12 B", "2 KB", "5.0 MB", "1 line", "1,500 lines"]));
});

it("shortens a path only below the session's folder", () => {
  expect([shortPath("/a/b/c", "/a/b/"), shortPath("/a/bc", "/a/b"), shortPath("/a/b", "/a/b"), shortPath("/x", undefined)]).toEqual(["c", "/a/bc", ".", "/x"]);
});

describe("mentions", () => {
  it("are paths after an @", () => {
    expect(mentions("see @src/a.py, and @\"with space.txt\".").filter((part) => part.mention).map((part) => part.text)).toEqual(["@src/a.py", '@"with space.txt"']);
  });
  it("are no e-mail addresses, and lose no text", () => {
    const text = "mail a@b.example @ noon";
    expect(mentions(text)).toEqual([{ text, mention: false }]);
  });
});

describe("what a call is about", () => {
  it.each([
    [{ command: "ls -l" }, "ls -l"], [{ command: ["bash", "-lc", "a | b"] }, "a | b"], [{ cmd: ["echo", "it's here"] }, "echo 'it'\\''s here'"],
    [{ path: "x" }, undefined], ["text", undefined], [null, undefined],
  ])("%j runs %j", (input, command) => expect(commandOf(input)).toBe(command));
  it("may be a path by many names", () => expect([pathOf({ file_path: "a" }), pathOf({ abs_path: "b" }), pathOf([])]).toEqual(["a", "b", undefined]));
  it("may be nothing", () => expect([{}, [], null, "", undefined, 0].map(isEmpty)).toEqual([true, true, true, true, true, false]));
  it("is not said twice", () => {
    const content = [{ type: "content" as const, content: { type: "text" as const, text: "done\n" } }];
    expect([furtherOutput("done", content), furtherOutput("more", content), furtherOutput({}, content)]).toEqual([undefined, "more", undefined]);
  });
  it("may be fenced whole", () => {
    expect(unfence("```sh\na\nb\n```\n")).toEqual({ text: "a\nb", language: "sh" });
    expect(unfence("text ```x```")).toBeNull();
  });
});

describe("the end of a turn", () => {
  it("is silent when it is as it should be", () => expect(endOf({ stopReason: "end_turn", error: null })).toBeNull());
  it("is said in plain words otherwise", () => {
    expect(endOf({ stopReason: "max_tokens", error: null })?.title).toContain("ran out of tokens");
    expect(endOf({ stopReason: "out_of_coffee", error: null })?.title).toBe("The turn ended: out of coffee.");
    expect(endOf({ stopReason: null, error: { code: "x", message: "No model.", hint: "Choose one." } })).toEqual({ severity: "error", title: "No model.", hint: "Choose one." });
  });
});
