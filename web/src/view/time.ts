import { useSyncExternalStore } from "react";

// One timer for the whole page, and none while nothing runs.
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
let now = Date.now();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  now = Date.now();
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
  };
}

const never = () => () => undefined;

/** The time, told every second while `running`. */
export function useNow(running: boolean): number {
  return useSyncExternalStore(running ? subscribe : never, () => now);
}
