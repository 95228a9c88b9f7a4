/** Where we are: `#/` is a new session, `#/s/ID` is a session. The part after # never leaves the browser. */

import { useSyncExternalStore } from "react";

export function sessionAddress(sessionId: string): string {
  return `#/s/${encodeURIComponent(sessionId)}`;
}

export const START = "#/";

export function goTo(address: string): void {
  window.location.hash = address;
}

function currentSession(): string | null {
  const match = /^#\/s\/(.+)$/.exec(window.location.hash);
  return match?.[1] === undefined ? null : decodeURIComponent(match[1]);
}

export function useRoute(): string | null {
  return useSyncExternalStore((changed) => {
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, currentSession);
}
