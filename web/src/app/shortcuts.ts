/** Keys that work anywhere on the page. In a field only those with a modifier do, and Escape. */

import { useEffect } from "react";
import type { Chat } from "../model/chat";
import { grouped } from "../model/sessions";
import { goTo, sessionAddress, START } from "./route";

export interface Places {
  search(): void;
  composer(): void;
  /** The oldest open question. */
  question(): void;
  shortcuts(): void;
}

export function useShortcuts(chat: Chat, places: Places): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || inPopup(event)) return;
      if (handle(chat, places, event)) event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [chat, places]);
}

function handle(chat: Chat, places: Places, event: KeyboardEvent): boolean {
  // With Alt a Mac types another letter: the key itself counts then.
  const key = event.altKey && event.code.startsWith("Key") ? event.code.slice(3).toLowerCase() : event.key;
  const combined = `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.altKey ? "Alt+" : ""}${key}`;
  switch (combined) {
    case "Ctrl+k":
      places.search();
      return true;
    case "Alt+n":
      goTo(START);
      return true;
    case "Alt+q":
      places.question();
      return true;
    case "Alt+ArrowUp":
      step(chat, -1);
      return true;
    case "Alt+ArrowDown":
      step(chat, 1);
      return true;
    case "Escape":
      return stop(chat);
    case "/":
      if (inField(event)) return false;
      places.composer();
      return true;
    case "?":
      if (inField(event)) return false;
      places.shortcuts();
      return true;
    default:
      return false;
  }
}

function stop(chat: Chat): boolean {
  const { current, conversations } = chat.store.getState();
  if (current === null || conversations.get(current)?.working !== true) return false;
  chat.cancel(current);
  return true;
}

function step(chat: Chat, by: number): void {
  const { sessions, current, leaving } = chat.store.getState();
  const order = grouped(
    [...(sessions?.values() ?? [])].filter((session) => !leaving.has(session.sessionId)),
    "day",
  ).flatMap((group) => group.sessions);
  const at = order.findIndex((session) => session.sessionId === current);
  const next = order[at < 0 ? 0 : at + by];
  if (next !== undefined) goTo(sessionAddress(next.sessionId));
}

function inField(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

/** Popups have keys of their own. */
function inPopup(event: KeyboardEvent): boolean {
  return (event.target as HTMLElement).closest("[role=dialog], [role=menu], [role=listbox]") !== null;
}
