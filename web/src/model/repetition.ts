/** What agents say twice: in a call's card and after it. The page says it once. */

import type { ContentBlock, ToolContent } from "../bridge/events";
import type { Item, ToolItem } from "./conversation";
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
  if (afterTold(draft, draft.length)) return true;
  if (block.type !== "text") return false;
  const call = callBefore(draft, draft.length);
  const said = block.text.trim();
  return (
    call?.kind === "tool" &&
    call.status === "failed" &&
    said !== "" &&
    call.content.some((part) => textOf(part) === said)
  );
}

/** Whether what stands at this place follows a call that says of itself that it is told again. */
export function afterTold(draft: Draft, place: number): boolean {
  const call = callBefore(draft, place);
  return call?.kind === "tool" && call.told === true;
}

function callBefore(draft: Draft, place: number): Item | undefined {
  const before = draft.at(place - 1);
  return before?.kind === "permission" ? draft.at(place - 2) : before;
}

function textOf(part: ToolContent): string {
  return part.type === "content" && part.content.type === "text" ? part.content.text.trim() : "";
}
