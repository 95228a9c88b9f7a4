/** Where we are: `#/` is a new session, `#/s/ID` is a session, `#/policy` and `#/audit` are pages of their own. The part after # never leaves the browser. */

import { useSyncExternalStore } from "react";

export function sessionAddress(sessionId: string): string {
  return `#/s/${encodeURIComponent(sessionId)}`;
}

export const START = "#/";

export type View = "policy" | "audit";

export function goTo(address: string): void {
  window.location.hash = address;
}

function currentSession(): string | null {
  const match = /^#\/s\/(.+)$/.exec(window.location.hash);
  if (match?.[1] === undefined) return null;
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return match[1]; // an address that was cut: no session has this id, and the page says so
  }
}

function currentView(): View | undefined {
  return /^#\/(policy|audit)\b/.exec(window.location.hash)?.[1] as View | undefined;
}

/** The page that is shown instead of a session. */
export function useView(): View | undefined {
  return useSyncExternalStore(onRoute, currentView);
}

function onRoute(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

export function useRoute(): string | null {
  return useSyncExternalStore(onRoute, currentSession);
}
