import { describe, expect, it } from "vitest";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import type { JsonValue } from "../../src/bridge/events";
import { endOf } from "../../src/view/message/ends";
import { mentions } from "../../src/view/message/mentions";
import { commandOf, exitOf, furtherOutput, isEmpty, pathOf, unfence } from "../../src/view/tool/input";
import { plainTitle, Title } from "../../src/view/tool/Title";
import { bytes, duration, elapsed, plural, shortPath } from "../../src/view/words";

describe("words for numbers", () => {
  it.each([
    [400, "0.4 s"],
    [12_300, "12 s"],
    [59_900, "1 min"],
    [65_000, "1 min 5 s"],
    [7_800_000, "2 h 10 min"],
    [-5, "0.0 s"],
  ])("%i ms took %s", (time, words) => expect(duration(time)).toBe(words));
  it("count whole seconds while it runs", () =>
    expect([elapsed(3_900), elapsed(61_000)]).toEqual(["3 s", "1 min 1 s"]));
  it("are short", () =>
    expect([bytes(12), bytes(2048), bytes(5_242_880), plural(1, "line"), plural(1500, "line")]).toEqual([
      "12 B",
      "2 KB",
      "5.0 MB",
      "1 line",
      "1,500 lines",
    ]));
});

it("shortens a path only below the session's folder", () => {
  expect([
    shortPath("/a/b/c", "/a/b/"),
    shortPath("/a/bc", "/a/b"),
    shortPath("/a/b", "/a/b"),
    shortPath("/x", undefined),
  ]).toEqual(["c", "/a/bc", ".", "/x"]);
});

describe("mentions", () => {
  it("are paths after an @", () => {
    expect(
      mentions('see @src/a.py, and @"with space.txt".')
        .filter((part) => part.mention)
        .map((part) => part.text),
    ).toEqual(["@src/a.py", '@"with space.txt"']);
  });
  it("are no e-mail addresses, and lose no text", () => {
    const text = "mail a@b.example @ noon";
    expect(mentions(text)).toEqual([{ text, mention: false }]);
  });
});

describe("what a call is about", () => {
  it.each([
    [{ command: "ls -l" }, "ls -l"],
    [{ command: ["bash", "-lc", "a | b"] }, "a | b"],
    [{ cmd: ["echo", "it's here"] }, "echo 'it'\\''s here'"],
    [{ path: "x" }, undefined],
    ["text", undefined],
    [null, undefined],
  ])("%j runs %j", (input, command) => expect(commandOf(input)).toBe(command));
  it("may be a path by many names", () =>
    expect([pathOf({ file_path: "a" }), pathOf({ abs_path: "b" }), pathOf([])]).toEqual(["a", "b", undefined]));
  it("may be nothing", () =>
    expect([{}, [], null, "", undefined, 0].map(isEmpty)).toEqual([true, true, true, true, true, false]));
  it("is not said twice", () => {
    const content = [{ type: "content" as const, content: { type: "text" as const, text: "done\n" } }];
    expect([furtherOutput("done", content), furtherOutput("more", content), furtherOutput({}, content)]).toEqual([
      undefined,
      "more",
      undefined,
    ]);
  });
  it("is no fold of its own when it is only how a command ended", () => {
    expect(furtherOutput({ exitCode: 3, signal: null, timedOut: false }, [])).toBeUndefined();
    expect([
      exitOf({ exitCode: 3, signal: null, timedOut: false }),
      exitOf({ exit_code: 0 }),
      exitOf({ exitStatus: { exitCode: 2 } }),
    ]).toEqual(["Exit code 3", "", "Exit code 2"]);
    expect([exitOf({ exitCode: null, signal: "SIGKILL" }), exitOf({ exitCode: 1, timedOut: true })]).toEqual([
      "Ended by SIGKILL",
      "Timed out",
    ]);
    expect([
      exitOf({ exitCode: 0, output: "x" }),
      exitOf({}),
      exitOf("0"),
      exitOf([1]),
      exitOf({ exitCode: { a: 1 } }),
    ]).toEqual([null, null, null, null, null]);
  });
  it("is read in one go however deep it is", () => {
    let output: JsonValue = 3;
    for (let depth = 0; depth < 200; depth++) output = { exit_code: output };
    expect(exitOf(output)).toBe("Exit code 3");
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
    expect(endOf({ stopReason: null, error: { code: "x", message: "No model.", hint: "Choose one." } })).toEqual({
      severity: "error",
      title: "No model.",
      hint: "Choose one.",
    });
  });
});

describe("code in a title", () => {
  it.each([
    ["Run `npm test`", "Run <code>npm test</code>"],
    ['`git commit -m "a long…', "<code>git commit -m &quot;a long…</code>"],
    ["Always allow `npm *` and `ls`", "Always allow <code>npm *</code> and <code>ls</code>"],
    ["``echo `date` ``", "<code>echo `date`</code>"],
    ["plain", "plain"],
    ["", ""],
  ])("%s", (title, html) => {
    expect(renderToStaticMarkup(createElement("p", null, createElement(Title, { text: title })))).toBe(
      `<p>${html}</p>`,
    );
    expect(plainTitle(title).includes("`npm")).toBe(false);
  });
});
