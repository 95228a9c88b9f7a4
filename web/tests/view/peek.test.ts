import { expect, test } from "vitest";
import type { Terminal, ToolItem } from "../../src/model/conversation";
import { lastLines } from "../../src/view/tool/peek";

const text = (value: string): ToolItem["content"] => [{ type: "content", content: { type: "text", text: value } }];
const none = new Map<string, Terminal>();

test("the last lines that a command printed, without colours", () => {
  expect(lastLines({ toolKind: "execute", content: text("1\n2\n3\n4\n\u001b[32m5\u001b[0m\n\n") }, none)).toEqual(["2", "3", "4", "5"]);
  expect(lastLines({ toolKind: "execute", content: text("```console\none\n```") }, none)).toEqual(["one"]);
});

test("those of a terminal", () => {
  const terminals = new Map([["t", { terminalId: "t", output: "a\nb\n", truncated: false, exit: null }]]);
  expect(lastLines({ toolKind: "other", content: [{ type: "terminal", terminalId: "t" }] }, terminals)).toEqual(["a", "b"]);
});

test("none of what is no command, and of silence", () => {
  expect(lastLines({ toolKind: "read", content: text("a") }, none)).toEqual([]);
  expect(lastLines({ toolKind: "execute", content: text(" \n\n") }, none)).toEqual([]);
  expect(lastLines({ toolKind: "execute", content: [] }, none)).toEqual([]);
});

test("of 5 MB they are found at once", () => {
  const started = performance.now();
  expect(lastLines({ toolKind: "execute", content: text("x".repeat(5_000_000)) }, none)).toHaveLength(1);
  expect(performance.now() - started).toBeLessThan(100);
});
