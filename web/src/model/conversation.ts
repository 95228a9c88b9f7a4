/**
 * What one session looks like on the page: the reducer (reducer.ts) makes it from events, the view draws it.
 *
 * Everything is immutable. An item that did not change keeps its identity from one batch of events to the
 * next, so `memo` over one item is enough; `items` itself is a new array whenever anything in it changed.
 */

import type {
  Approval,
  Command,
  ConfigOption,
  ContentBlock,
  JsonObject,
  JsonValue,
  Mode,
  PermissionOption,
  QuestionFacts,
  Rememberable,
  PlanEntry,
  QueuedMessage,
  SessionState,
  StopError,
  ToolCallFields,
  ToolContent,
  ToolKind,
  ToolLocation,
  ToolStatus,
} from "../bridge/events";

interface ItemBase {
  /** Never changes while the item lives, also when older events are put before it: React's key. */
  readonly key: string;
  /** The journal's number of the event that began it. What is not in the journal yet has Infinity: it comes last. */
  readonly seq: number;
  /** When it began, in milliseconds since 1970; 0 if unknown. */
  readonly at: number;
}

export interface UserItem extends ItemBase {
  readonly kind: "user";
  readonly content: readonly ContentBlock[];
  readonly clientMessageId: string | null;
  /** Reported by the agent, not typed here, as in the history of a session that only the agent knew. */
  readonly told?: boolean;
  /** `offline`: waits for the connection. `sending`: on its way. `queued`: the gateway has it, another turn runs. */
  readonly state: "offline" | "sending" | "queued" | "sent" | "failed";
  readonly error: StopError | null;
}

/** Consecutive chunks of one message. Adjacent text is joined: `parts` alternates text and what is none. */
export interface AgentItem extends ItemBase {
  readonly kind: "agent";
  readonly messageId: string | null;
  readonly parts: readonly ContentBlock[];
  /** More of it may come: draw the last block as unfinished. */
  readonly streaming: boolean;
  /** It says what the failed call before it says already: not drawn again. */
  readonly echo?: boolean;
}

export interface ThoughtItem extends ItemBase {
  readonly kind: "thought";
  readonly messageId: string | null;
  readonly text: string;
  readonly streaming: boolean;
  readonly endedAt: number;
}

export interface ToolItem extends ItemBase {
  readonly kind: "tool";
  readonly toolCallId: string;
  readonly title: string;
  readonly toolName: string | null;
  readonly toolKind: ToolKind;
  readonly status: ToolStatus;
  readonly input: JsonValue | undefined;
  readonly output: JsonValue | undefined;
  /** Text, diffs, and terminals by id (Conversation.terminals has their output). */
  readonly content: readonly ToolContent[];
  readonly locations: readonly ToolLocation[];
  /** 0 while it runs. A call that its turn left behind has status `failed` and `abandoned`. */
  readonly endedAt: number;
  readonly abandoned: boolean;
  /** The rule that decided about this call; no person was asked. */
  readonly rule?: string;
  /** A permission question about this call is open. */
  readonly asking: boolean;
  /** The message after it says the same again. */
  readonly told?: boolean;
  /** It ran before the rules saw it. */
  readonly unmediated?: boolean;
  /** The user refused it. */
  readonly refused?: boolean;
}

export interface Answer {
  readonly outcome: "selected" | "cancelled";
  readonly optionId?: string;
  /** Where it holds for longer than once, and until when. */
  readonly remembered?: { readonly scope: string; readonly until?: string | null; readonly words: string };
  /** Who answered, as the gateway names it: a client's name, `policy`, ... */
  readonly by: string;
  /** The name of the token that answered. */
  readonly who?: string | undefined;
  readonly at: number;
}

export interface PermissionItem extends ItemBase {
  readonly kind: "permission";
  readonly requestId: string;
  /** What the request says about the call, over what was known of it: draw the command, path or diff in full. */
  readonly toolCall: ToolCallFields;
  readonly options: readonly PermissionOption[];
  /** Why it is asked, and what the rules see; null in older journals. */
  readonly facts: QuestionFacts | null;
  /** What an answer for longer than once would remember; null: it is answered once only. */
  readonly remember: Rememberable | null;
  /** Who has to approve, and who did; null: the first answer decides. */
  readonly approval: Approval | null;
  readonly answer: Answer | null;
  /** The option that this page has sent and the gateway has not confirmed yet. */
  readonly sending: string | null;
  /** Answered by this page: "Allowed by you", not "Allowed elsewhere". */
  readonly mine: boolean;
}

export interface ElicitationItem extends ItemBase {
  readonly kind: "elicitation";
  readonly requestId: string;
  readonly mode: "form" | "url";
  readonly message: string;
  readonly schema: JsonObject | null;
  readonly url: string | null;
  readonly answer: {
    readonly action: "accept" | "decline" | "cancel";
    readonly by: string;
    readonly at: number;
  } | null;
  readonly sending: boolean;
  readonly mine: boolean;
}

export interface NoticeItem extends ItemBase {
  readonly kind: "notice";
  readonly severity: "info" | "warning" | "error";
  readonly title: string;
  readonly detail: string | null;
}

/** A quiet line: the mode changed, the agent was revived, the session was parked. */
export interface MarkerItem extends ItemBase {
  readonly kind: "marker";
  readonly text: string;
}

export interface TurnEndItem extends ItemBase {
  readonly kind: "turn_end";
  readonly stopReason: string | null;
  readonly error: StopError | null;
  /** How long the turn took in milliseconds; 0 when its beginning is not known. */
  readonly duration: number;
}

export interface UnknownItem extends ItemBase {
  readonly kind: "unknown";
  readonly type: string;
  readonly raw: JsonValue;
}

export type Item =
  | UserItem
  | AgentItem
  | ThoughtItem
  | ToolItem
  | PermissionItem
  | ElicitationItem
  | NoticeItem
  | MarkerItem
  | TurnEndItem
  | UnknownItem;

export interface Terminal {
  readonly terminalId: string;
  /** Everything it wrote so far that we know of, with its escape sequences. */
  readonly output: string;
  readonly truncated: boolean;
  /** null while it runs. */
  readonly exit: { readonly exitCode: number | null; readonly signal: string | null } | null;
}

export interface Usage {
  readonly used: number | null;
  readonly size: number | null;
  readonly cost: { readonly amount: number; readonly currency: string } | null;
}

export interface Conversation {
  readonly sessionId: string;
  /** In the order to draw them. */
  readonly items: readonly Item[];
  /** Ranges of events that a rewind undid: their items stay here, and are not drawn. Null: no rewind is known. */
  readonly undone: readonly (readonly number[])[] | null;
  /** Where in `items` the item of a tool call, a question or an own message is. */
  readonly places: { readonly tools: ReadonlyMap<string, number>; readonly questions: ReadonlyMap<string, number> };
  /** Answers to questions that are older than what we hold, by request id. */
  readonly answers: ReadonlyMap<
    string,
    {
      readonly outcome?: Answer["outcome"];
      readonly optionId?: string;
      readonly action?: "accept" | "decline" | "cancel";
      readonly by: string;
      readonly at: number;
    }
  >;
  readonly terminals: ReadonlyMap<string, Terminal>;
  readonly plan: readonly PlanEntry[];
  readonly modes: readonly Mode[];
  readonly modeId: string | null;
  readonly configOptions: readonly ConfigOption[];
  readonly commands: readonly Command[];
  readonly queue: readonly QueuedMessage[];
  readonly usage: Usage | null;
  readonly title: string | null;
  readonly state: SessionState;
  readonly capabilities: { readonly image: boolean; readonly audio: boolean; readonly embeddedContext: boolean };
  /** The first and last event that we hold; 0 when none. Older ones can be had while `firstSeq` > `journalFirst`. */
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** How many events came after `lastSeq` that could not be stored, and so have no number. */
  readonly unkept: number;
  readonly journalFirst: number;
  /** Everything that was there when we came has arrived. */
  readonly caughtUp: boolean;
  /** A turn runs (working, silent, or waiting for an answer). */
  readonly working: boolean;
  readonly turnStartedAt: number;
}

/** The items that were not undone; the same array if that is all of them. */
export function shownItems({ items, undone }: Pick<Conversation, "items" | "undone">): readonly Item[] {
  if (undone === null || undone.length === 0) return items;
  return items.filter(({ seq }) => !undone.some(([first = 0, last = 0]) => first <= seq && seq <= last));
}
