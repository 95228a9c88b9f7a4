import { expect, test } from "vitest";
import type { SessionSummary } from "../../src/bridge/events";
import { grouped, liveOf, matches } from "../../src/model/sessions";
import { snapshot } from "../bridge/gateway";

const NOW = Date.parse("2026-11-16T12:00:00");
const ago = (hours: number) => new Date(NOW - hours * 3600_000).toISOString();
const session = (id: string, more: Partial<SessionSummary> = {}): SessionSummary => ({ ...snapshot(id), ...more });

test("sessions are grouped by day, the newest first", () => {
  const groups = grouped(
    [
      session("old", { updatedAt: ago(200) }),
      session("new", { updatedAt: ago(1) }),
      session("newer", { updatedAt: ago(0) }),
      session("before", { updatedAt: ago(20) }),
    ],
    "day",
    NOW,
  );
  expect(groups.map(({ name, sessions }) => [name, sessions.map((one) => one.sessionId)])).toEqual([
    ["Today", ["newer", "new"]],
    ["Yesterday", ["before"]],
    ["This month", ["old"]],
  ]);
});

test("folders of the same name stay apart", () => {
  const groups = grouped([session("a", { cwd: "/x/api" }), session("b", { cwd: "/y/api" })], "workspace", NOW);
  expect(groups.map(({ name, hint }) => [name, hint])).toEqual([
    ["api", "/x/api"],
    ["api", "/y/api"],
  ]);
});

test("an open question outweighs the state", () => {
  expect(liveOf({ state: "working", questions: 1 })).toBe("waiting");
  expect(liveOf({ state: "agent_dead", questions: 0 })).toBe("failed");
  expect(liveOf({ state: "something new" as never, questions: 0 })).toBe("idle");
});

test("every word of a search must be somewhere", () => {
  const one = session("a", { title: "Fix the login", agent: "claude", cwd: "/home/me/shop" });
  expect(matches(one, "login shop")).toBe(true);
  expect(matches(one, "login zed")).toBe(false);
});
