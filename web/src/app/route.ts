/** Where we are: `#/` is a new session, `#/s/ID` is a session. The part after # never leaves the browser. */

import { useSyncExternalStore } from "react";

export function sessionAddress(sessionId: string): string {
  return `#/s/${encodeURIComponent(sessionId)}`;
}

export const START = "#/";
export const POLICY = "#/policy";

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

/** Whether the page of rules and decisions is shown. */
export function usePolicyRoute(): boolean {
  return useSyncExternalStore(onRoute, () => window.location.hash === POLICY);
}

function onRoute(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

export function useRoute(): string | null {
  return useSyncExternalStore(onRoute, currentSession);
}
