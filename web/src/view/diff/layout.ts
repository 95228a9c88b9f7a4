/** One column or two: the reader's choice, kept for the next visit and shared by every diff on the page. */

import { useSyncExternalStore } from "react";

export type Layout = "inline" | "split";

const KEY = "dragoman.diff-layout";
const listeners = new Set<() => void>();
let layout: Layout = stored();

function stored(): Layout {
  try {
    return localStorage.getItem(KEY) === "split" ? "split" : "inline";
  } catch {
    return "inline"; // Storage can be forbidden; the choice then lasts as long as the page.
  }
}

export function setLayout(chosen: Layout): void {
  layout = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // As above.
  }
  for (const listener of listeners) listener();
}

export function useLayout(): Layout {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => layout,
  );
}
