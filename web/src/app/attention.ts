/** Tells a user who looks elsewhere that a session waits: the tab's title, and a notification when allowed. */

import { useEffect, useRef, useSyncExternalStore } from "react";
import type { SessionSummary } from "../bridge/events";
import { liveOf, titleOf } from "../model/sessions";
import { areOffered, areWanted, type Note, notify, want } from "./notifications";
import { usePage } from "./page";
import { sessionAddress } from "./route";

const watchers = new Set<() => void>();

/** Whether notifications are on, and how to switch them; null where the browser has none. */
export function useNotifications(): { on: boolean; toggle(): Promise<void> } | null {
  const on = useSyncExternalStore((changed) => {
    watchers.add(changed);
    return () => watchers.delete(changed);
  }, areWanted);
  if (!areOffered()) return null;
  const toggle = async () => {
    await want(!on);
    for (const watcher of watchers) watcher();
  };
  return { on, toggle };
}

export function useAttention(): void {
  const sessions = usePage((state) => state.sessions);
  const current = usePage((state) => state.current);
  const told = useRef(new Set<string>());

  useEffect(() => {
    const all = [...(sessions?.values() ?? [])];
    const waiting = all.filter((session) => liveOf(session) === "waiting");
    document.title = pageTitle(waiting.length, current === null ? undefined : sessions?.get(current));
    for (const session of waiting) {
      const looking = session.sessionId === current && document.visibilityState === "visible" && document.hasFocus();
      if (!told.current.has(session.sessionId) && !looking) void notify(noteOf(session));
    }
    told.current = new Set(waiting.map((session) => session.sessionId));
  }, [sessions, current]);
}

function pageTitle(waiting: number, session: SessionSummary | undefined): string {
  const name = session === undefined ? "Dragoman" : `${titleOf(session)} · Dragoman`;
  if (waiting > 0) return `(${waiting}) waiting for you · ${name}`;
  return session !== undefined && liveOf(session) === "working" ? `… ${name}` : name;
}

function noteOf(session: SessionSummary): Note {
  const { agent, sessionId } = session;
  return { title: `${agent} waits for you`, body: titleOf(session), tag: sessionId, place: sessionAddress(sessionId) };
}
