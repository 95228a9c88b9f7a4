import { expect, test } from "vitest";
import { bestTime } from "../time";
import type { Terminal, ToolItem } from "../../src/model/conversation";
import { peek } from "../../src/view/tool/peek";

const text = (value: string): ToolItem["content"] => [{ type: "content", content: { type: "text", text: value } }];
const none = new Map<string, Terminal>();

test("the last lines that a command printed, without colours", () => {
  const printed = peek({ toolKind: "execute", content: text("1\n2\n3\n4\n\u001b[32m5\u001b[0m\n\n") }, none);
  expect(printed).toEqual({ lines: ["2", "3", "4", "5"], from: "end", more: 0 });
  expect(peek({ toolKind: "execute", content: text("```console\none\n```") }, none).lines).toEqual(["one"]);
});

test("those of a terminal", () => {
  const terminals = new Map([["t", { terminalId: "t", output: "a\nb\n", truncated: false, exit: null }]]);
  expect(peek({ toolKind: "other", content: [{ type: "terminal", terminalId: "t" }] }, terminals).lines).toEqual([
    "a",
    "b",
  ]);
});

test("the first lines of what was read or found, and how many follow", () => {
  expect(peek({ toolKind: "read", content: text("a\n\nb") }, none)).toEqual({
    lines: ["a", "", "b"],
    from: "begin",
    more: 0,
  });
  expect(peek({ toolKind: "search", content: text("```\n1\n2\n3\n4\n5\n6\n```") }, none)).toEqual({
    lines: ["1", "2", "3", "4"],
    from: "begin",
    more: 2,
  });
});

test("none of what neither prints nor reads, and of silence", () => {
  expect(peek({ toolKind: "think", content: text("a") }, none).lines).toEqual([]);
  expect(peek({ toolKind: "execute", content: text(" \n\n") }, none).lines).toEqual([]);
  expect(peek({ toolKind: "read", content: text(" \n\n") }, none).lines).toEqual([]);
  expect(peek({ toolKind: "execute", content: [] }, none).lines).toEqual([]);
});

test("of 5 MB they are found at once", () => {
  expect(
    bestTime(() => {
      expect(peek({ toolKind: "execute", content: text("x".repeat(5_000_000)) }, none).lines).toHaveLength(1);
      expect(peek({ toolKind: "read", content: text("x\n".repeat(2_500_000)) }, none).lines).toHaveLength(4);
    }),
  ).toBeLessThan(200);
});
