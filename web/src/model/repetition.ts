/** What agents say twice: in a call's card and after it. The page says it once. */

import type { ContentBlock, ToolContent } from "../bridge/events";
import type { ToolItem } from "./conversation";
import type { Draft } from "./draft";

/** What agents write into a call that the person stopped: the end of the turn says it for all of them. */
const STOPPED = /^\W*(cancell?ed|aborted|interrupted|request interrupted by user)\W*$/i;

/** A call that failed for being stopped, as one that was left behind; another as it is. */
export function withoutStop(item: ToolItem): ToolItem {
  const content = item.content.filter((part) => !STOPPED.test(textOf(part)));
  const output = typeof item.output === "string" && STOPPED.test(item.output) ? undefined : item.output;
  if (content.length === item.content.length && output === item.output) return item;
  return { ...item, content, output, abandoned: true };
}

/** Whether a message only repeats what the call before it failed with; the answer to a question may stand between. */
export function repeats(draft: Draft, block: ContentBlock): boolean {
  if (block.type !== "text") return false;
  const last = draft.last;
  const call = last?.kind === "permission" ? draft.at(draft.length - 2) : last;
  const said = block.text.trim();
  return call?.kind === "tool" && call.status === "failed" && said !== "" && call.content.some((part) => textOf(part) === said);
}

function textOf(part: ToolContent): string {
  return part.type === "content" && part.content.type === "text" ? part.content.text.trim() : "";
}
