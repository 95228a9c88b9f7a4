/**
 * Events in, conversation out. Pure: the same events make the same conversation, however they are batched.
 *
 * A page of history may begin in the middle of anything, so every event must make sense alone: progress of a call
 * whose start is older makes a call with little in it, and `join` completes it when the older page arrives.
 */

import type { Incoming } from "../bridge/connection";
import type {
  JournalEvent,
  SessionSnapshot,
  SessionSummary,
  TerminalOutput,
  ToolCallFields,
  ToolContent,
} from "../bridge/events";
import type { Conversation, Item, NoticeItem, PermissionItem, ToolItem, Usage } from "./conversation";
import { Draft } from "./draft";
import { afterTold, repeats, withoutStop } from "./repetition";
import { isWellFormed } from "./shapes";
import { textOf } from "./untrusted";

type Of<T extends JournalEvent["type"]> = Extract<JournalEvent, { type: T }>;
type Handlers = { [T in JournalEvent["type"]]: (draft: Draft, event: Of<T>, at: number) => void };

const NO_TURN = new Set(["idle", "parked", "agent_dead", "context_lost", "closed"]);

export function emptyConversation(sessionId: string): Conversation {
  return {
    sessionId,
    items: [],
    places: { tools: new Map(), questions: new Map() },
    answers: new Map(),
    terminals: new Map(),
    undone: null,
    plan: [],
    modes: [],
    modeId: null,
    configOptions: [],
    commands: [],
    queue: [],
    usage: null,
    title: null,
    state: "idle",
    capabilities: { image: false, audio: false, embeddedContext: false },
    firstSeq: 0,
    lastSeq: 0,
    unkept: 0,
    journalFirst: 1,
    caughtUp: false,
    working: false,
    turnStartedAt: 0,
  };
}

/** What the snapshot says holds now; events that follow it (they are older or newer) only add items. */
export function withSnapshot(conversation: Conversation, session: SessionSnapshot, afterSeq: number): Conversation {
  const resumed = conversation.lastSeq > 0 && conversation.lastSeq === afterSeq;
  const from = resumed ? conversation : emptyConversation(session.sessionId);
  return {
    ...from,
    firstSeq: resumed ? from.firstSeq : afterSeq + 1,
    lastSeq: afterSeq,
    journalFirst: session.firstSeq,
    caughtUp: afterSeq >= session.lastSeq,
    modes: session.modes?.availableModes ?? [],
    modeId: session.modes?.currentModeId ?? null,
    configOptions: session.configOptions,
    commands: session.commands,
    queue: session.queue,
    plan: session.plan,
    usage: session.usage === null ? from.usage : usageOf(session.usage),
    title: session.title,
    state: session.state,
    working: !NO_TURN.has(session.state),
    capabilities: session.promptCapabilities,
  };
}

/** A turn that has no event yet, because its prompt waits for a checkpoint or for the agent's start, runs already. */
export function withSummary(conversation: Conversation, summary: SessionSummary): Conversation {
  const working = !NO_TURN.has(summary.state);
  const { caughtUp, turnStartedAt } = conversation;
  if (summary.elsewhere || !caughtUp || turnStartedAt !== 0 || conversation.working === working) return conversation;
  return { ...conversation, state: summary.state, working };
}

/** Applies events in order; several at once cost one copy of what they change. */
export function applyEvents(conversation: Conversation, events: readonly Incoming[]): Conversation {
  if (events.length === 0) return conversation;
  const draft = new Draft(conversation);
  for (const event of events) applyOne(draft, event);
  return draft.finish();
}

/** Events of the journal have a number and a time; what could not be stored has only a time. */
export function isConversation(event: Incoming): boolean {
  const { seq, timestamp } = event as { seq?: unknown; timestamp?: unknown };
  return typeof seq === "number" || typeof timestamp === "string";
}

/** Between two numbers: the place of an event that has none. */
const UNKEPT_STEP = 2 ** -20;

function applyOne(draft: Draft, event: Incoming): void {
  if (event.type === "caught_up") {
    draft.fields.caughtUp = true;
    return;
  }
  if (!isConversation(event)) return;
  const { seq: number } = event as { seq?: number };
  if (number === undefined) {
    draft.fields.unkept += 1;
  } else {
    draft.fields.unkept = 0;
    draft.fields.lastSeq = number;
    if (draft.fields.firstSeq === 0) draft.fields.firstSeq = number;
  }
  const seq = number ?? draft.fields.lastSeq + draft.fields.unkept * UNKEPT_STEP;
  const at = Date.parse(String((event as { timestamp?: unknown }).timestamp)) || 0;
  const known = (number === undefined ? { ...event, seq } : event) as JournalEvent;
  const handler = HANDLERS[known.type] as ((draft: Draft, event: JournalEvent, at: number) => void) | undefined;
  if (handler === undefined || !isWellFormed(event)) unknown(draft, event, seq, at);
  else {
    try {
      handler(draft, known, at);
    } catch (error) {
      // A bug of ours: it costs this event, and not the session, which would have it again at every load.
      console.error(error);
      unknown(draft, event, seq, at);
    }
  }
}

const HANDLERS: Handlers = {
  user_message: (draft, event, at) => {
    const told = event.author === "agent";
    settle(draft, at);
    if (!told) begin(draft, at);
    const last = draft.last;
    const id = event.clientMessageId ?? null;
    if (
      last?.kind === "user" &&
      (last.told ?? false) === told &&
      last.seq === event.seq - last.content.length &&
      last.clientMessageId === id
    ) {
      draft.replace(draft.length - 1, { ...last, content: [...last.content, event.content] });
    } else {
      draft.push({
        ...base("u", event.seq, at),
        kind: "user",
        content: [event.content],
        clientMessageId: id,
        state: "sent",
        error: null,
        ...(told ? { told } : {}),
      });
    }
  },

  message_chunk: (draft, event, at) => {
    const last = draft.last;
    const block = event.block ?? { type: "text" as const, text: event.content };
    const messageId = event.messageId ?? null;
    if (last?.kind !== "agent" || !last.streaming || last.messageId !== messageId) {
      settle(draft, at);
      draft.push({
        ...base("a", event.seq, at),
        kind: "agent",
        messageId,
        parts: [block],
        streaming: true,
        ...(repeats(draft, block) ? { echo: true } : {}),
      });
      return;
    }
    const part = last.parts[last.parts.length - 1];
    const parts =
      part?.type === "text" && block.type === "text"
        ? [...last.parts.slice(0, -1), { ...part, text: part.text + block.text }]
        : [...last.parts, block];
    draft.replace(draft.length - 1, {
      ...last,
      parts,
      ...(last.echo && !afterTold(draft, draft.length - 1) ? { echo: false } : {}),
    });
  },

  thought_chunk: (draft, event, at) => {
    const last = draft.last;
    const messageId = event.messageId ?? null;
    if (last?.kind === "thought" && last.streaming && last.messageId === messageId) {
      draft.replace(draft.length - 1, { ...last, text: last.text + event.content, endedAt: at });
    } else {
      settle(draft, at);
      draft.push({
        ...base("h", event.seq, at),
        kind: "thought",
        messageId,
        text: event.content,
        streaming: true,
        endedAt: at,
      });
    }
  },

  tool_call_started: (draft, event, at) => tool(draft, event, at, { toolName: event.toolName, input: event.arguments }),
  tool_call_progress: (draft, event, at) => {
    tool(draft, event, at, {});
    if (event.terminal !== undefined) print(draft, event.terminal);
  },
  tool_call_completed: (draft, event, at) => {
    tool(draft, unfolded(event), at, {});
    if (event.terminal !== undefined) print(draft, event.terminal);
  },

  permission_request: (draft, event, at) => {
    settle(draft, at);
    const place = draft.tool(event.toolCall.toolCallId);
    const about = place === undefined ? undefined : (draft.at(place) as ToolItem);
    if (about !== undefined && place !== undefined)
      draft.replace(place, { ...merged(about, event.toolCall, at), asking: true });
    draft.push({
      ...base("p", event.seq, at),
      kind: "permission",
      requestId: event.requestId,
      options: event.options,
      facts: event.facts ?? null,
      remember: event.remember ?? null,
      approval: event.approval ?? null,
      toolCall: about === undefined ? event.toolCall : described(about, event.toolCall),
      answer: null,
      sending: null,
      mine: false,
    });
  },

  permission_approved: (draft, event) => {
    const place = draft.question(event.requestId);
    const asked = place === undefined ? undefined : draft.at(place);
    if (asked?.kind !== "permission" || place === undefined || asked.approval === null) return;
    const said = [...asked.approval.said, { by: event.by, at: event.at }];
    draft.replace(place, { ...asked, approval: { ...asked.approval, said }, sending: null });
  },

  permission_resolved: (draft, event, at) => {
    const place = event.requestId === null ? undefined : draft.question(event.requestId);
    const asked = place === undefined ? undefined : draft.at(place);
    const callId = event.toolCallId ?? (asked as PermissionItem | undefined)?.toolCall.toolCallId;
    const call = callId === undefined ? undefined : draft.tool(callId);
    const refused =
      asked?.kind === "permission" &&
      /^reject/.test(asked.options.find(({ optionId }) => optionId === event.outcome.optionId)?.kind ?? "");
    if (call !== undefined)
      draft.replace(call, {
        ...(draft.at(call) as ToolItem),
        asking: false,
        ...(refused ? { refused } : {}),
        ...(event.requestId === null ? { rule: event.by } : {}),
      });
    const remembered = event.remembered === undefined ? {} : { remembered: event.remembered };
    const answer = { ...event.outcome, ...remembered, by: event.client ?? event.by, at, who: event.identity };
    if (asked?.kind !== "permission" || place === undefined) {
      if (event.requestId !== null) draft.setAnswer(event.requestId, answer);
      return;
    }
    draft.replace(place, {
      ...asked,
      answer,
      approval: asked.approval === null ? null : { ...asked.approval, said: event.approvals ?? asked.approval.said },
      sending: null,
      mine: asked.sending !== null && asked.sending === (answer.optionId ?? ""),
    });
  },

  elicitation_request: (draft, event, at) => {
    settle(draft, at);
    draft.push({
      ...base("e", event.seq, at),
      kind: "elicitation",
      requestId: event.requestId,
      mode: event.mode,
      message: event.message,
      schema: event.requestedSchema ?? null,
      url: event.url ?? null,
      answer: null,
      sending: false,
      mine: false,
    });
  },

  elicitation_resolved: (draft, event, at) => {
    const place = draft.question(event.requestId);
    const asked = place === undefined ? undefined : draft.at(place);
    const answer = { action: event.action, by: event.client ?? event.by, at };
    if (asked?.kind !== "elicitation" || place === undefined) draft.setAnswer(event.requestId, answer);
    else draft.replace(place, { ...asked, answer, sending: false, mine: asked.sending });
  },

  terminal_output: (draft, event) => print(draft, event),

  plan_created: (draft, event) => {
    draft.fields.plan = event.entries;
  },
  mode_changed: (draft, event, at) => {
    const mode = draft.fields.modes.find(({ id }) => id === event.modeId);
    if (draft.fields.caughtUp) draft.fields.modeId = event.modeId;
    mark(draft, event.seq, at, `Mode: ${mode?.name ?? event.modeId}`);
  },
  model_changed: (draft, event, at) => mark(draft, event.seq, at, `Model: ${event.modelId}`),
  setting_chosen: () => undefined, // what came of it has an event of its own
  config_options: (draft, event) => {
    if (draft.fields.caughtUp) draft.fields.configOptions = event.options;
  },
  commands_available: (draft, event) => {
    if (draft.fields.caughtUp) draft.fields.commands = event.commands;
  },
  usage: (draft, event) => {
    draft.fields.usage = { ...draft.fields.usage, ...usageOf(event) };
  },
  session_info: (draft, event) => {
    if (event.title !== undefined) draft.fields.title = event.title;
    if (!draft.fields.caughtUp) return; // the snapshot knows better
    if (event.state !== undefined) draft.fields.state = event.state;
    const { modes, configOptions } = event;
    if (modes) Object.assign(draft.fields, { modes: modes.availableModes, modeId: modes.currentModeId });
    if (configOptions) draft.fields.configOptions = configOptions;
  },
  notice: (draft, event, at) => notice(draft, event.seq, at, event.severity, event.title, null),
  events_lost: (draft, event, at) => {
    const which =
      event.firstSeq === event.seq ? `Event ${event.seq} is` : `Events ${event.firstSeq} to ${event.seq} are`;
    notice(
      draft,
      event.seq,
      at,
      "error",
      `${which} damaged in the journal and cannot be shown`,
      "dragoman doctor says more.",
    );
  },
  queue_changed: (draft, event) => {
    if (draft.fields.caughtUp) draft.fields.queue = event.queue;
  },

  turn_complete: (draft, event, at) => {
    settle(draft, at);
    abandon(draft, at, event.stopReason === "cancelled");
    const started = draft.fields.turnStartedAt;
    draft.push({
      ...base("t", event.seq, at),
      kind: "turn_end",
      stopReason: event.stopReason ?? null,
      error: event.error ?? null,
      duration: started > 0 && at > started ? at - started : 0,
    });
    draft.fields.turnStartedAt = 0;
    if (draft.fields.caughtUp) Object.assign(draft.fields, { working: false, state: "idle" });
  },

  agent_exited: (draft, event, at) => {
    if (event.expected) mark(draft, event.seq, at, event.message);
    else notice(draft, event.seq, at, "error", "The agent stopped", event.message);
  },
  agent_revived: (draft, event, at) => mark(draft, event.seq, at, "The agent was restarted"),
  session_parked: (draft, event, at) =>
    mark(draft, event.seq, at, "Parked to save memory: the agent comes back with your next message"),
  conversation_rewound: (draft, event, at) => {
    draft.fields.undone = event.undone;
    const back = event.message === undefined ? "" : ` to before message ${event.message}`;
    mark(draft, event.seq, at, event.undo ? `Rewind undone by ${event.by}` : `Rewound${back} by ${event.by}`);
  },
  unknown_update: (draft, event, at) => unknown(draft, event, event.seq, at),
};

function base(letter: string, seq: number, at: number): { key: string; seq: number; at: number } {
  return { key: `${letter}${seq}`, seq, at };
}

function begin(draft: Draft, at: number): void {
  if (draft.fields.turnStartedAt === 0) draft.fields.turnStartedAt = at;
  if (draft.fields.caughtUp) Object.assign(draft.fields, { working: true, state: "working" });
}

/** Whatever was streaming is complete now: something else has begun. */
function settle(draft: Draft, at: number): void {
  const last = draft.last;
  if (last?.kind === "agent" && last.streaming) draft.replace(draft.length - 1, { ...last, streaming: false });
  if (last?.kind === "thought" && last.streaming)
    draft.replace(draft.length - 1, { ...last, streaming: false, endedAt: at || last.endedAt });
}

/** The turn is over: its open calls will not finish, and its questions are void. */
function abandon(draft: Draft, at: number, stopped: boolean): void {
  for (let index = draft.length - 1; index >= 0; index -= 1) {
    const item = draft.at(index) as Item;
    if (item.kind === "turn_end") return;
    if (item.kind === "tool" && (item.status === "pending" || item.status === "in_progress")) {
      draft.replace(index, { ...item, status: "failed", abandoned: true, asking: false, endedAt: at });
    } else if (stopped && item.kind === "tool" && item.status === "failed") {
      draft.replace(index, withoutStop(item));
    } else if (item.kind === "permission" && item.answer === null) {
      draft.replace(index, { ...item, answer: { outcome: "cancelled", by: "turn", at }, sending: null });
    } else if (item.kind === "elicitation" && item.answer === null) {
      draft.replace(index, { ...item, answer: { action: "cancel", by: "turn", at }, sending: false });
    }
  }
}

/** More output of a terminal, and perhaps its end. */
function print(draft: Draft, printed: TerminalOutput): void {
  const before = draft.terminal(printed.terminalId);
  const exit =
    printed.exitStatus == null
      ? (before?.exit ?? null)
      : { exitCode: printed.exitStatus.exitCode ?? null, signal: printed.exitStatus.signal ?? null };
  draft.setTerminal({
    terminalId: printed.terminalId,
    output: (before?.output ?? "") + printed.output,
    truncated: printed.truncated ?? before?.truncated ?? false,
    exit,
  });
}

function tool(draft: Draft, fields: ToolCallFields & { seq: number }, at: number, own: Partial<ToolItem>): void {
  settle(draft, at);
  const place = draft.tool(fields.toolCallId);
  if (place === undefined) {
    const fresh: ToolItem = {
      ...base("c", fields.seq, at),
      kind: "tool",
      toolCallId: fields.toolCallId,
      title: "",
      toolName: null,
      toolKind: "other",
      status: "pending",
      input: undefined,
      output: undefined,
      content: [],
      locations: [],
      endedAt: 0,
      abandoned: false,
      asking: false,
    };
    draft.push({ ...merged(fresh, fields, at), ...defined(own) });
  } else {
    draft.replace(place, { ...merged(draft.at(place) as ToolItem, fields, at), ...defined(own) });
  }
}

/** As ACP tells it: the result back where it stood, in the content or by itself. */
function unfolded({ result, content, ...fields }: Of<"tool_call_completed">): ToolCallFields & { seq: number } {
  if (content === undefined) return { ...fields, rawOutput: result };
  const text: ToolContent = { type: "content", content: { type: "text", text: textOf(result) } };
  const placed = content.some((part) => part.type === "result");
  return {
    ...fields,
    content: content.map((part) => (part.type === "result" ? text : part)),
    rawOutput: placed ? null : result,
  };
}

/** ACP: every field of an update is optional and replaces what was there. */
function merged(item: ToolItem, fields: ToolCallFields, at: number): ToolItem {
  const status = fields.status ?? item.status;
  const over = status === "completed" || status === "failed";
  return {
    ...item,
    title: fields.title ?? item.title,
    toolKind: fields.kind ?? item.toolKind,
    status,
    content: fields.content ?? item.content,
    locations: fields.locations ?? item.locations,
    input: fields.rawInput ?? item.input,
    output: fields.rawOutput ?? item.output,
    endedAt: over ? item.endedAt || at : 0,
    abandoned: false,
    asking: over ? false : item.asking,
    ...(fields.told ? { told: true } : {}),
    ...(fields.unmediated ? { unmediated: true } : {}),
  };
}

/** What a question says about its call, over what was known of it. */
export function described(item: ToolItem, fields: ToolCallFields): ToolCallFields {
  return {
    title: item.title,
    kind: item.toolKind,
    status: item.status,
    content: [...item.content],
    locations: [...item.locations],
    ...(item.input === undefined ? {} : { rawInput: item.input }),
    ...defined(fields),
    toolCallId: item.toolCallId,
  };
}

function defined<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)) as T;
}

function mark(draft: Draft, seq: number, at: number, text: string): void {
  draft.push({ ...base("k", seq, at), kind: "marker", text });
}

function notice(
  draft: Draft,
  seq: number,
  at: number,
  severity: NoticeItem["severity"],
  title: string,
  detail: string | null,
): void {
  draft.push({ ...base("n", seq, at), kind: "notice", severity, title, detail });
}

function unknown(draft: Draft, event: Incoming, seq: number, at: number): void {
  const { raw } = event as { raw?: unknown };
  draft.push({ ...base("x", seq, at), kind: "unknown", type: event.type, raw: (raw ?? event) as never });
}

export function usageOf(fields: { [more: string]: unknown }): Usage {
  const number = (value: unknown) => (typeof value === "number" ? value : null);
  return { used: number(fields.used), size: number(fields.size), cost: (fields.cost as Usage["cost"]) ?? null };
}
