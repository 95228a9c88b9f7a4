/**
 * `useACPBridge(url)`: one session of a gateway in a React component, without the rest of this web chat.
 *
 *     const { isConnected, messages, currentStreamingMessage, sendMessage } = useACPBridge("ws://127.0.0.1:8420/bridge?token=…");
 *
 * The client lives as long as the component. To show several sessions, use `BridgeClient` itself.
 */

import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import {
  type AgentItem,
  type Conversation,
  type PermissionItem,
  shownItems,
  type ToolItem,
} from "../model/conversation";
import { perFrame } from "../model/frame";
import { applyEvents, emptyConversation, withSnapshot } from "../model/reducer";
import { BridgeClient, type ClientOptions, type Hello, type Reply } from "./client";
import type { Incoming } from "./connection";
import type { BridgeEvent, ContentBlock, JsonValue } from "./events";
import type { Entry } from "./outbox";

/** A tool call of the agent. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonValue;
  /** Once it ended: its own output, or the text that people see of it. */
  readonly result?: JsonValue;
  readonly status: "pending" | "completed" | "error";
}

/** What a person wrote, or all that the agent answered to it. */
export interface ChatMessage {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly content: string;
  readonly timestamp: number;
  readonly toolCalls?: readonly ToolCall[];
  /** Of an own message: whether the gateway has it. */
  readonly state: "offline" | "sending" | "queued" | "sent" | "failed";
}

export interface ACPBridge {
  readonly client: BridgeClient;
  readonly isConnected: boolean;
  readonly hello: Hello | null;
  readonly conversation: Conversation | null;
  /** What was said, own messages that are on their way included; the answer of the turn that runs is not among them yet. */
  readonly messages: readonly ChatMessage[];
  /** The text of the answer so far, "" when no turn runs. */
  readonly currentStreamingMessage: string;
  /** The calls of the turn that runs, those that ended included. */
  readonly pendingToolCalls: readonly ToolCall[];
  readonly pendingPermissions: readonly PermissionItem[];
  newSession(cwd: string, agent?: string): Promise<Reply>;
  loadSession(sessionId: string): void;
  /** To the session that is shown; one that is named is shown from then on. */
  sendMessage(content: string | ContentBlock[], sessionId?: string): void;
  cancelTurn(sessionId?: string): void;
  respondToPermission(requestId: string, outcome: { outcome: "selected" | "cancelled"; optionId?: string }): void;
  changeMode(modeId: string): void;
}

export function useACPBridge(url: string, options?: ClientOptions): ACPBridge {
  const [conversation, setConversation] = useState<Conversation | null>(null);
  const shown = useRef<string | null>(null);
  const first = useRef(options);
  const client = useMemo(() => new BridgeClient(url, first.current), [url]);
  const status = useSyncExternalStore(
    (changed) => client.watch(changed),
    () => client.status,
  );
  const unsent = useSyncExternalStore(
    (changed) => client.watch(changed),
    () => client.unsent(),
  );

  useEffect(() => {
    const forget = client.on(
      perFrame((events: Incoming[]) => {
        for (const event of events)
          if (event.type === "session_created") shown.current ??= (event as { sessionId: string }).sessionId;
        setConversation((before) => events.reduce((made, event) => next(made, event, shown.current), before));
      }),
    );
    client.start();
    return () => {
      forget();
      client.stop();
    };
  }, [client]);

  const loadSession = useCallback(
    (sessionId: string) => {
      if (shown.current !== null) client.leave(shown.current);
      shown.current = sessionId;
      setConversation(null);
      client.open(sessionId);
    },
    [client],
  );

  const newSession = useCallback(
    (cwd: string, agent?: string) => {
      if (shown.current !== null) client.leave(shown.current);
      shown.current = null;
      setConversation(null);
      return client.request({ type: "new_session", cwd, ...(agent === undefined ? {} : { agent }) });
    },
    [client],
  );

  const sendMessage = useCallback(
    (content: string | ContentBlock[], sessionId: string | null = shown.current) => {
      if (sessionId === null) return;
      if (sessionId !== shown.current) {
        loadSession(sessionId);
        setConversation(emptyConversation(sessionId)); // the message is shown at once
      }
      client.sendMessage(sessionId, content);
    },
    [client, loadSession],
  );

  /** What needs a session does nothing without one. */
  const inSession = useCallback((act: (sessionId: string) => void) => {
    if (shown.current !== null) act(shown.current);
  }, []);
  const told = useMemo(() => tellTurns(conversation), [conversation]);
  return {
    client,
    conversation,
    newSession,
    loadSession,
    sendMessage,
    isConnected: status.state === "open",
    hello: client.hello,
    messages: useMemo(() => [...told.messages, ...onTheirWay(conversation, unsent)], [told, conversation, unsent]),
    currentStreamingMessage: told.running?.content ?? "",
    pendingToolCalls: told.running?.toolCalls ?? NO_CALLS,
    pendingPermissions: (conversation?.items ?? []).filter(
      (item) => item.kind === "permission" && item.answer === null,
    ) as PermissionItem[],
    cancelTurn: useCallback(
      (sessionId: string | null | undefined = shown.current) => {
        if (sessionId != null) client.send({ type: "cancel_turn", sessionId });
      },
      [client],
    ),
    changeMode: useCallback(
      (modeId) => inSession((sessionId) => client.send({ type: "change_mode", sessionId, modeId })),
      [client, inSession],
    ),
    respondToPermission: useCallback(
      (requestId, outcome) => client.send({ type: "permission_response", requestId, outcome }),
      [client],
    ),
  };
}

const NO_CALLS: readonly ToolCall[] = [];

function next(conversation: Conversation | null, event: Incoming, sessionId: string | null): Conversation | null {
  const known = event as BridgeEvent;
  if (!("sessionId" in known) || known.sessionId !== sessionId || sessionId === null) return conversation;
  const before = conversation ?? emptyConversation(sessionId);
  if (known.type === "session_created") return withSnapshot(before, known.session, 0);
  if (known.type === "session_loaded") return withSnapshot(before, known.session, known.afterSeq);
  return applyEvents(before, [event]);
}

/** Everything between two messages of a person is one answer; the last one runs until its turn ends. */
function tellTurns(conversation: Conversation | null): { messages: ChatMessage[]; running: ChatMessage | null } {
  const messages: ChatMessage[] = [];
  let running: ChatMessage | null = null;
  const over = () => {
    if (running !== null) messages.push(running);
    running = null;
  };
  for (const item of conversation === null ? [] : shownItems(conversation)) {
    if (item.kind === "user") {
      over();
      messages.push({
        id: item.key,
        role: "user",
        content: textOf(item.content),
        timestamp: item.at,
        state: item.state,
      });
    } else if (item.kind === "turn_end") {
      over();
    } else if (item.kind === "agent" || item.kind === "tool") {
      running = withItem(
        running ?? { id: item.key, role: "assistant", content: "", timestamp: item.at, state: "sent" },
        item,
      );
    }
  }
  return { messages, running };
}

function withItem(message: ChatMessage, item: AgentItem | ToolItem): ChatMessage {
  if (item.kind === "agent") return { ...message, content: message.content + textOf(item.parts) };
  return { ...message, toolCalls: [...(message.toolCalls ?? []), callOf(item)] };
}

function callOf(item: ToolItem): ToolCall {
  const status = item.status === "completed" ? "completed" : item.status === "failed" ? "error" : "pending";
  const shown = item.content
    .flatMap((part) => (part.type === "content" && part.content.type === "text" ? [part.content.text] : []))
    .join("\n");
  const result = item.output ?? (shown === "" ? undefined : shown);
  return {
    id: item.toolCallId,
    name: item.toolName ?? item.toolKind,
    arguments: item.input ?? {},
    status,
    ...(status === "pending" || result === undefined ? {} : { result }),
  };
}

function onTheirWay(conversation: Conversation | null, unsent: readonly Entry[]): ChatMessage[] {
  return unsent.flatMap(({ command, at, state }): ChatMessage[] => {
    if (command.type !== "send_message" || command.sessionId !== conversation?.sessionId) return [];
    const content = typeof command.content === "string" ? command.content : textOf(command.content);
    const shown = state === "waiting" ? "offline" : state === "failed" ? "failed" : "sending";
    return [{ id: command.clientMessageId, role: "user", content, timestamp: at, state: shown }];
  });
}

function textOf(blocks: readonly ContentBlock[]): string {
  return blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
}
