/**
 * The bridge's events, by their names on the wire (docs/reference/bridge.md says what each means).
 *
 * A numbered event is one event of the session's journal: `seq` rises by one, so a gap is a fault. While the journal
 * cannot be written, its events come without `seq`: they are shown once and cannot be had again.
 * Everything else about a session (its live state, an acknowledgement) has no number and is never replayed.
 */

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

// -- what ACP calls content

export interface TextBlock {
  type: "text";
  text: string;
}
export interface ImageBlock {
  type: "image";
  data: string;
  mimeType: string;
  uri?: string;
}
export interface AudioBlock {
  type: "audio";
  data: string;
  mimeType: string;
}
export interface ResourceLinkBlock {
  type: "resource_link";
  uri: string;
  name: string;
  title?: string;
  mimeType?: string;
  size?: number;
}
export interface ResourceBlock {
  type: "resource";
  resource: { uri: string; mimeType?: string; text?: string; blob?: string };
}
export type ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceLinkBlock | ResourceBlock;

export type ToolKind =
  | "read"
  | "edit"
  | "delete"
  | "move"
  | "search"
  | "execute"
  | "think"
  | "fetch"
  | "switch_mode"
  | "other";
export type ToolStatus = "pending" | "in_progress" | "completed" | "failed";
export interface ToolLocation {
  path: string;
  line?: number | null;
}
export interface Diff {
  type: "diff";
  path: string;
  oldText?: string | null;
  newText: string;
}
export type ToolContent = { type: "content"; content: ContentBlock } | Diff | { type: "terminal"; terminalId: string };

export interface PermissionOption {
  optionId: string;
  name: string;
  kind: "allow_once" | "allow_always" | "reject_once" | "reject_always" | string;
}
/** What the rules see of a call, and why it is asked about. */
export interface QuestionFacts {
  why: string;
  commands: string[];
  paths: { path: string; access: string; outside: boolean }[];
  hosts: string[];
  opaque?: string; // why the shell line is not understood
}
/** What would be remembered: lines that a person may edit. */
export interface Rememberable {
  pattern: string[];
  scopes: string[];
  until: string[];
}
export interface Wish {
  scope: string;
  until?: string;
  pattern?: string[];
}
export interface PlanEntry {
  content: string;
  priority: "high" | "medium" | "low";
  status: "pending" | "in_progress" | "completed";
}
export interface Mode {
  id: string;
  name: string;
  description?: string | null;
}
export interface Command {
  name: string;
  description: string;
  input?: { hint: string } | null;
}
export interface ConfigChoice {
  value: string;
  name: string;
  description?: string | null;
}
export interface ConfigGroup {
  group: string;
  name: string;
  options: ConfigChoice[];
}
export interface ConfigOption {
  id: string;
  name: string;
  description?: string | null;
  category?: string | null;
  type: "select" | "boolean";
  currentValue: string | boolean;
  options?: (ConfigChoice | ConfigGroup)[];
}
export interface StopError {
  code: string;
  message: string;
  hint?: string;
}
/** `held`: why it is not sent. `stopped`: because the turn was stopped; it waits for `send_queued`. */
export interface QueuedMessage {
  clientMessageId: string;
  content: ContentBlock[];
  held?: string;
  stopped?: boolean;
}
export interface ToolCallFields {
  toolCallId: string;
  title?: string;
  kind?: ToolKind;
  status?: ToolStatus;
  content?: ToolContent[];
  locations?: ToolLocation[];
  rawInput?: JsonValue;
  rawOutput?: JsonValue;
  terminal?: TerminalOutput;
  /** The message after it says the same again, for terminals. */
  told?: boolean;
  /** It ran before the rules saw it. */
  unmediated?: boolean;
}
/** Where a completed call's `result` stands among its content. */
export interface ResultPlace {
  type: "result";
}
/** What a terminal printed since the last time; an exit status means that it ended. */
export interface TerminalOutput {
  terminalId: string;
  output: string;
  exitStatus?: { exitCode?: number | null; signal?: string | null } | null;
  truncated?: boolean;
}

// -- down: from the bridge to the UI

interface Numbered {
  sessionId: string;
  seq: number;
  timestamp: string;
}

export type JournalEvent = Numbered &
  (
    | { type: "user_message"; content: ContentBlock; clientMessageId?: string; author?: "agent" } // author: the agent says that it was said
    | { type: "message_chunk"; content: string; block?: ContentBlock; messageId?: string } // block: what is no text
    | { type: "thought_chunk"; content: string; messageId?: string }
    | ({ type: "tool_call_started"; toolName: string; arguments: JsonValue } & Required<
        Pick<ToolCallFields, "toolCallId" | "title" | "kind">
      > &
        Omit<ToolCallFields, "rawInput">) // arguments: ACP's rawInput
    | ({ type: "tool_call_progress" } & ToolCallFields)
    | ({
        type: "tool_call_completed";
        result: JsonValue;
        status: "completed" | "failed";
        content?: (ToolContent | ResultPlace)[];
      } & Omit<ToolCallFields, "content" | "rawOutput">) // result: ACP's rawOutput, or the text for which a ResultPlace stands
    | {
        type: "permission_request";
        requestId: string;
        toolCall: ToolCallFields;
        options: PermissionOption[];
        facts?: QuestionFacts;
        remember?: Rememberable; // absent: it is answered once only
        approval?: Approval; // only where a rule names who has to approve
      }
    | { type: "permission_approved"; requestId: string; by: string; at: string; client?: string } // it waits for more
    | {
        type: "permission_resolved";
        requestId: string | null;
        outcome: { outcome: "selected" | "cancelled"; optionId?: string };
        by: string;
        client?: string;
        identity?: string; // the name of the token that answered
        toolCallId?: string;
        approvals?: Approved[];
        remembered?: { id: string; scope: string; until?: string | null; words: string };
      }
    | {
        type: "elicitation_request";
        requestId: string;
        mode: "form" | "url";
        message: string;
        requestedSchema?: JsonObject;
        url?: string;
      }
    | {
        type: "elicitation_resolved";
        requestId: string;
        action: "accept" | "decline" | "cancel";
        by: string;
        client?: string;
      }
    | ({ type: "terminal_output"; toolCallId?: string } & TerminalOutput)
    | { type: "plan_created"; entries: PlanEntry[] }
    | { type: "mode_changed"; modeId: string }
    | { type: "model_changed"; modelId: string }
    | { type: "config_options"; options: ConfigOption[] }
    | { type: "commands_available"; commands: Command[] }
    | {
        type: "usage";
        used?: number;
        size?: number;
        cost?: { amount: number; currency: string } | null;
        [more: string]: unknown;
      }
    | { type: "setting_chosen"; name: string; value: JsonValue } // what a person chose; what came of it follows as mode_changed or config_options
    | {
        type: "session_info";
        title?: string | null;
        state?: SessionState;
        modes?: { currentModeId: string | null; availableModes: Mode[] };
        configOptions?: ConfigOption[];
        [more: string]: unknown;
      } // modes and options: what an agent that came back offers
    | { type: "notice"; title: string; severity: "info" | "warning" | "error" }
    | { type: "events_lost"; firstSeq: number } // from firstSeq to seq the journal is damaged
    | { type: "queue_changed"; queue: QueuedMessage[] }
    | { type: "turn_complete"; stopReason: string | null; error?: StopError }
    | { type: "agent_exited"; message: string; expected: boolean }
    | { type: "agent_revived"; rung: string }
    | { type: "session_parked" }
    | { type: "conversation_rewound"; undone: [number, number][]; message?: number; undo?: boolean; by: string } // events in these ranges are not shown any more
    | { type: "unknown_update"; raw: JsonValue }
  );

export type SessionState =
  | "idle"
  | "working"
  | "silent"
  | "waiting_for_permission"
  | "parked"
  | "agent_dead"
  | "context_lost"
  | "closed";

/** How much of what an agent does reaches the rules before it happens. */
export interface Mediation {
  level: string; // full, asking or none
  why: string;
}

export interface SessionSummary {
  sessionId: string;
  agent: string;
  cwd: string;
  workspace?: string;
  title: string | null;
  state: SessionState;
  live: boolean;
  createdAt?: string;
  updatedAt: string;
  clients: number;
  questions: number;
  sandbox?: string | null;
  mediation?: Mediation; // of a live one, in its present mode
  elsewhere?: boolean; // another process has it: its state may be a second old
}

export interface AgentSummary {
  name: string;
  title: string;
  default: boolean;
  installed: boolean;
  install?: string;
  sandbox?: string | null;
  mediation?: Mediation;
  model?: string | null;
  commands?: Command[];
}

/** What a session is right now; comes once after `new_session`, `load_session` and `resume`, before its events. */
export interface SessionSnapshot extends SessionSummary {
  firstSeq: number;
  lastSeq: number;
  epoch?: number;
  modes: { currentModeId: string | null; availableModes: Mode[] } | null;
  configOptions: ConfigOption[];
  commands: Command[];
  queue: QueuedMessage[];
  usage: JsonObject | null;
  plan: PlanEntry[];
  promptCapabilities: { image: boolean; audio: boolean; embeddedContext: boolean };
}

export type Role = "admin" | "control" | "approve" | "observe";

/** Who has to approve a question, and who did. */
export interface Approval {
  rules: { rule: string; approvals: number; approvers: string[] }[];
  promptedBy: string;
  since: string;
  said: Approved[];
}

export interface Approved {
  by: string;
  role?: string;
  at: string;
  client?: string;
}

export type LooseEvent =
  | {
      type: "hello";
      version: string;
      bridge: 1;
      role: Role;
      identity: string; // the name of this page's token
      agents: AgentSummary[];
      defaultAgent: string;
      sandboxes: string[];
      home: string;
      folder: string;
      limits: { maxMessageBytes: number };
    }
  | { type: "session_created"; sessionId: string; session: SessionSnapshot; clientMessageId?: string }
  | { type: "session_loaded"; sessionId: string; session: SessionSnapshot; afterSeq: number; clientMessageId?: string }
  | { type: "caught_up"; sessionId: string; lastSeq: number } // everything until now has been sent; what follows is live
  | { type: "history"; sessionId: string; events: JournalEvent[]; more: boolean; clientMessageId?: string }
  | { type: "session_list"; sessions: SessionSummary[]; nextCursor?: string; clientMessageId?: string }
  | { type: "session_changed"; session: SessionSummary } // to all pages that listed sessions
  | { type: "session_deleted"; sessionId: string }
  | {
      type: "paths";
      prefix: string;
      entries: { path: string; name: string; directory: boolean }[];
      clientMessageId?: string;
    }
  | { type: "ack"; clientMessageId: string; sessionId?: string; duplicate?: true }
  | { type: "error"; code: string; message: string; hint?: string; sessionId?: string; clientMessageId?: string };

export type BridgeEvent = JournalEvent | LooseEvent;

// -- up: from the UI to the bridge. Every one may carry `clientMessageId`; a repeated one is acknowledged, not repeated.

export type BridgeCommand = { clientMessageId?: string } & (
  | { type: "new_session"; cwd: string; agent?: string; sandbox?: string; additionalDirectories?: string[] }
  | { type: "load_session"; sessionId: string; afterSeq?: number; epoch?: number; tail?: number } // tail: only the last so many events
  | { type: "resume"; sessionId: string; afterSeq: number; epoch?: number; tail?: number }
  | { type: "history"; sessionId: string; beforeSeq: number; limit?: number }
  | { type: "leave_session"; sessionId: string }
  | { type: "send_message"; sessionId: string; content: string | ContentBlock[] }
  | { type: "edit_queued"; sessionId: string; queuedId: string; content: string | ContentBlock[] }
  | { type: "drop_queued"; sessionId: string; queuedId: string } // queuedId is the clientMessageId it was queued with
  | { type: "send_queued"; sessionId: string; queuedId?: string } // one that is held, or all that wait
  | { type: "cancel_turn"; sessionId: string }
  | {
      type: "permission_response";
      requestId: string;
      outcome: { outcome: "selected" | "cancelled"; optionId?: string };
      remember?: Wish;
    }
  | { type: "elicitation_response"; requestId: string; action: "accept" | "decline" | "cancel"; content?: JsonObject }
  | { type: "change_mode"; sessionId: string; modeId: string }
  | { type: "set_config_option"; sessionId: string; configId: string; value: string | boolean }
  | { type: "rename_session"; sessionId: string; title: string }
  | { type: "close_session"; sessionId: string }
  | { type: "delete_session"; sessionId: string }
  | { type: "list_sessions"; cursor?: string; search?: string; cwd?: string; agent?: string }
  | { type: "complete_path"; prefix: string; sessionId?: string; directories?: boolean } // below the session's folder, or absolute
  | { type: "ping" }
);
