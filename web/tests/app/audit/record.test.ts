import fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonValue } from "../../../src/bridge/events";
import { aboutOf, type AuditRecord, factsOf, ruleText, whoOf, wordOf } from "../../../src/app/audit/record";

function record(kind: string, facts: Record<string, JsonValue>): AuditRecord {
  return { id: "20261118-aaaaaaaa:7", n: 7, at: "2026-11-18T03:31:02.123Z", kind, ...facts };
}

test("a decision is about its commands, one rule decided it", () => {
  const denied = record("decision", {
    decision: "deny",
    by: "no rm",
    rule: { name: "no rm", command: [["rm"]] },
    act: { commands: [{ words: ["rm", "-rf", "x"] }], paths: [{ path: "/x", access: "write", outside: true }] },
  });
  expect(wordOf(denied)).toEqual({ word: "deny", tone: "bad" });
  expect(aboutOf(denied)).toBe("rm -rf x");
  expect(whoOf(denied)).toBe("no rm");
  expect(ruleText(denied.rule)).toBe('name = "no rm"\ncommand = [["rm"]]');
  expect(factsOf(denied).map(([name]) => name)).toEqual(["decision", "by"]);
});

test("the person who answered is named, not the word for any person", () => {
  expect(whoOf(record("answer", { by: "user", identity: "ann" }))).toBe("ann");
  expect(whoOf(record("answer", { by: "--approve none", identity: "local" }))).toBe("--approve none");
});

test("characters that hide or turn others around are shown as their numbers", () => {
  expect(aboutOf(record("unmediated", { title: "a\u202egnp.exe\u0007\u200b" }))).toBe(
    "a⟨U+202E⟩gnp.exe⟨U+0007⟩⟨U+200B⟩",
  );
});

test("no record makes the page fail", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (facts, act) => {
      const hostile = record("decision", { ...(facts as Record<string, JsonValue>), act: act as JsonValue });
      expect(typeof `${wordOf(hostile).word}${aboutOf(hostile)}${whoOf(hostile)}`).toBe("string");
      for (const [name, value] of factsOf(hostile)) expect(typeof (name + value)).toBe("string");
      expect(typeof ruleText(act as JsonValue)).toBe("string");
    }),
  );
});
