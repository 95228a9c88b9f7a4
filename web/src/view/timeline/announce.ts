import { useEffect, useRef, useState } from "react";
import type { Item } from "../../model/conversation";
import { textOf } from "../message/AgentMessage";
import { endOf } from "../message/ends";

const LONGEST = 400;
/** More than this at once is history that arrives, not news. */
const MOST = 40;

/** What a screen reader is told: finished messages, failures, and how the turn ended. Never what is being written. */
export function useAnnouncement(items: readonly Item[], caughtUp: boolean): string {
  const told = useRef<Set<string> | null>(null);
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!caughtUp) return;
    const recent = items.slice(-MOST);
    if (told.current === null) {
      told.current = new Set(recent.filter((item) => announcement(item) !== null).map((item) => item.key));
      return;
    }
    const news: string[] = [];
    for (const item of recent) {
      const words = told.current.has(item.key) ? null : announcement(item);
      if (words === null) continue;
      told.current.add(item.key);
      news.push(words);
    }
    if (news.length > 0) setSaid(news.join(" "));
  }, [items, caughtUp]);
  return said;
}

function announcement(item: Item): string | null {
  switch (item.kind) {
    case "agent":
      return item.streaming ? null : `Agent: ${textOf(item).slice(0, LONGEST)}`;
    case "tool":
      return item.status === "failed" ? `Failed: ${item.title}.` : null;
    case "notice":
      return item.title;
    case "turn_end":
      return endOf(item)?.title ?? "The agent is done.";
    default:
      return null;
  }
}
