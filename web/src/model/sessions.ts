/** The session list: what the gateway says, in the order and the groups in which it is shown. */

import type { SessionState, SessionSummary } from "../bridge/events";

export type Live = "working" | "waiting" | "idle" | "failed" | "asleep";

const LIVE: Record<SessionState, Live> = {
  idle: "idle",
  working: "working",
  silent: "working",
  waiting_for_permission: "waiting",
  parked: "asleep",
  agent_dead: "failed",
  context_lost: "failed",
  closed: "asleep",
};

export const LIVE_WORDS: Record<Live, string> = {
  working: "Working",
  waiting: "Waiting for you",
  idle: "Ready",
  failed: "The agent failed",
  asleep: "Asleep",
};

export function liveOf(session: Pick<SessionSummary, "state" | "questions">): Live {
  return session.questions > 0 ? "waiting" : (LIVE[session.state] ?? "idle");
}

export function titleOf(session: Pick<SessionSummary, "title">): string {
  return session.title?.trim() || "New session";
}

export function folderName(path: string): string {
  return path.replace(/\/+$/, "").split("/").pop() || path;
}

export type Grouping = "day" | "workspace";
export interface Group {
  readonly name: string;
  readonly hint: string;
  readonly sessions: readonly SessionSummary[];
}

export function grouped(sessions: readonly SessionSummary[], by: Grouping, now = Date.now()): Group[] {
  const groups = new Map<string, { hint: string; sessions: SessionSummary[] }>();
  const sorted = [...sessions].sort((one, other) => other.updatedAt.localeCompare(one.updatedAt));
  for (const session of sorted) {
    const place = session.workspace ?? session.cwd;
    const name = by === "day" ? dayOf(session.updatedAt, now) : folderName(place);
    const group = groups.get(by === "day" ? name : place) ?? { hint: by === "day" ? "" : place, sessions: [] };
    group.sessions.push(session);
    groups.set(by === "day" ? name : place, group);
  }
  return [...groups].map(([key, group]) => ({ name: by === "day" ? key : folderName(key), ...group }));
}

const DAY = 24 * 3600 * 1000;

function dayOf(timestamp: string, now: number): string {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const at = Date.parse(timestamp);
  if (Number.isNaN(at) || at >= midnight) return "Today";
  if (at >= midnight - DAY) return "Yesterday";
  if (at >= midnight - 7 * DAY) return "This week";
  if (at >= midnight - 30 * DAY) return "This month";
  return "Older";
}

export function matches(session: SessionSummary, search: string): boolean {
  const text = `${titleOf(session)} ${session.agent} ${session.cwd}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
