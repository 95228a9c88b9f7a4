/** Older events in front of what is there, so that both halves of whatever the border cut in two are one again. */

import type { Incoming } from "../bridge/connection";
import type { AgentItem, Conversation, Item, ThoughtItem, ToolItem } from "./conversation";
import { applyEvents, described, emptyConversation } from "./reducer";

export function withOlder(newer: Conversation, events: readonly Incoming[]): Conversation {
  const first = (events[0] as { seq?: number } | undefined)?.seq;
  if (first === undefined) return { ...newer, journalFirst: newer.firstSeq };
  // What the events say about modes and turns was true then; only their items are wanted.
  const older = applyEvents({ ...emptyConversation(newer.sessionId), modes: newer.modes }, events);
  const items = joined(older.items, newer);
  return {
    ...newer,
    items,
    places: placesOf(items),
    terminals: terminalsOf(older, newer),
    firstSeq: first,
    undone: newer.undone ?? older.undone,
    turnStartedAt: newer.turnStartedAt || older.turnStartedAt,
  };
}

function joined(older: readonly Item[], newer: Conversation): Item[] {
  const taken = new Set<Item>();
  const items = older.map((item, index) => {
    const late = counterpart(item, newer, index === older.length - 1);
    if (late === undefined) return finished(item, newer);
    taken.add(late);
    return completed(item, late);
  });
  const calls = new Map(older.flatMap((item) => (item.kind === "tool" ? [[item.toolCallId, item] as const] : [])));
  return [...items, ...newer.items.filter((item) => !taken.has(item)).map((item) => informed(item, calls))];
}

/** A question whose call began in the older half can now say what it is about. */
function informed(item: Item, calls: ReadonlyMap<string, ToolItem>): Item {
  const call = item.kind === "permission" ? calls.get(item.toolCall.toolCallId) : undefined;
  return item.kind === "permission" && call !== undefined
    ? { ...item, toolCall: described(call, item.toolCall) }
    : item;
}

/** The item of the newer half that is the rest of this one. */
function counterpart(item: Item, newer: Conversation, last: boolean): Item | undefined {
  if (item.kind === "tool") return at(newer, newer.places.tools.get(item.toolCallId));
  const first = newer.items[0];
  const adjacent = last && first !== undefined && first.seq === newer.firstSeq && first.kind === item.kind;
  if (!adjacent || (item.kind !== "agent" && item.kind !== "thought")) return undefined;
  return (first as AgentItem | ThoughtItem).messageId === item.messageId ? first : undefined;
}

/** Keys are those of the newer half: what is on the screen stays the same element. */
function completed(item: Item, late: Item): Item {
  if (item.kind === "tool" && late.kind === "tool") return completedTool(item, late);
  if (item.kind === "agent" && late.kind === "agent")
    return { ...late, seq: item.seq, at: item.at, parts: joinedParts(item, late) };
  if (item.kind === "thought" && late.kind === "thought") return joinedThought(item, late);
  return late;
}

function completedTool(item: ToolItem, late: ToolItem): ToolItem {
  return {
    ...late,
    seq: item.seq,
    at: item.at,
    title: late.title || item.title,
    toolName: late.toolName ?? item.toolName,
    toolKind: late.toolKind === "other" ? item.toolKind : late.toolKind,
    input: late.input ?? item.input,
    output: late.output ?? item.output,
    content: late.content.length > 0 ? late.content : item.content,
    locations: late.locations.length > 0 ? late.locations : item.locations,
  };
}

function joinedParts(item: AgentItem, late: AgentItem): AgentItem["parts"] {
  const last = item.parts[item.parts.length - 1];
  const [first, ...rest] = late.parts;
  if (last?.type !== "text" || first?.type !== "text") return [...item.parts, ...late.parts];
  return [...item.parts.slice(0, -1), { ...last, text: last.text + first.text }, ...rest];
}

function joinedThought(item: ThoughtItem, late: ThoughtItem): ThoughtItem {
  return { ...late, seq: item.seq, at: item.at, text: item.text + late.text };
}

/** A question whose answer is in the newer half; or a call that will not finish, because its turn has ended. */
function finished(item: Item, newer: Conversation): Item {
  const stray =
    item.kind === "permission" || item.kind === "elicitation" ? newer.answers.get(item.requestId) : undefined;
  const ended = newer.items.find((other) => other.kind === "turn_end" || (other.kind === "user" && !other.told));
  const by = stray ?? (ended === undefined ? undefined : { by: "turn", at: ended.at });
  if (item.kind === "permission" && item.answer === null && by !== undefined)
    return { ...item, answer: { outcome: "cancelled", ...by } };
  if (item.kind === "elicitation" && item.answer === null && by !== undefined)
    return { ...item, answer: { action: "cancel", ...by } };
  if ((item.kind === "agent" || item.kind === "thought") && item.streaming) return { ...item, streaming: false };
  return item;
}

function at(conversation: Conversation, place: number | undefined): Item | undefined {
  return place === undefined ? undefined : conversation.items[place];
}

function placesOf(items: readonly Item[]): Conversation["places"] {
  const tools = new Map<string, number>();
  const questions = new Map<string, number>();
  items.forEach((item, index) => {
    if (item.kind === "tool") tools.set(item.toolCallId, index);
    if (item.kind === "permission" || item.kind === "elicitation") questions.set(item.requestId, index);
  });
  return { tools, questions };
}

function terminalsOf(older: Conversation, newer: Conversation): Conversation["terminals"] {
  if (older.terminals.size === 0) return newer.terminals;
  const all = new Map(older.terminals);
  for (const [id, late] of newer.terminals) {
    const early = all.get(id);
    all.set(id, early === undefined ? late : { ...late, output: early.output + late.output });
  }
  return all;
}
