import { useSyncExternalStore } from "react";
import { keep, kept } from "./kept";

export type Theme = "system" | "light" | "dark";

const KEY = "dragoman.theme";
const ORDER: readonly Theme[] = ["system", "light", "dark"];
const watchers = new Set<() => void>();

export function theme(): Theme {
  const value = kept("localStorage", KEY);
  return value === "light" || value === "dark" ? value : "system";
}

export function applyTheme(): void {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export function nextTheme(): void {
  const next = ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length] ?? "system";
  keep("localStorage", KEY, next === "system" ? null : next);
  applyTheme();
  for (const watcher of watchers) watcher();
}

export function useTheme(): Theme {
  return useSyncExternalStore((changed) => {
    watchers.add(changed);
    return () => watchers.delete(changed);
  }, theme);
}
