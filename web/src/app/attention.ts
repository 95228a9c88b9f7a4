/** Tells somebody who looks elsewhere that a session waits: the tab's title, and a notification when allowed. */

import { useEffect, useRef, useSyncExternalStore } from "react";
import type { SessionSummary } from "../bridge/events";
import { liveOf, titleOf } from "../model/sessions";
import { keep, kept } from "./kept";
import { usePage } from "./page";
import { goTo, sessionAddress } from "./route";

const KEY = "dragoman.notify";
const watchers = new Set<() => void>();

function wanted(): boolean {
  return typeof Notification !== "undefined" && Notification.permission === "granted" && kept(localStorage, KEY) === "yes";
}

/** Whether notifications are on, and how to switch them; null where the browser has none. */
export function useNotifications(): { on: boolean; toggle(): Promise<void> } | null {
  const on = useSyncExternalStore((changed) => {
    watchers.add(changed);
    return () => watchers.delete(changed);
  }, wanted);
  if (typeof Notification === "undefined") return null;
  const toggle = async () => {
    if (!on && Notification.permission !== "granted") await Notification.requestPermission();
    keep(localStorage, KEY, on ? null : "yes");
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
      if (!told.current.has(session.sessionId) && !looking) notify(session);
    }
    told.current = new Set(waiting.map((session) => session.sessionId));
  }, [sessions, current]);
}

function pageTitle(waiting: number, session: SessionSummary | undefined): string {
  const name = session === undefined ? "Dragoman" : `${titleOf(session)} · Dragoman`;
  if (waiting > 0) return `(${waiting}) waiting for you · ${name}`;
  return session !== undefined && liveOf(session) === "working" ? `… ${name}` : name;
}

function notify(session: SessionSummary): void {
  if (!wanted()) return;
  const note = new Notification(`${session.agent} waits for you`, { body: titleOf(session), tag: session.sessionId });
  note.onclick = () => {
    window.focus();
    goTo(sessionAddress(session.sessionId));
    note.close();
  };
}
