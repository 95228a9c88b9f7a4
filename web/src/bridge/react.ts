/**
 * `useACPBridge(url)`: one session of a gateway in a React component, without the rest of this web chat.
 *
 *     const { isConnected, messages, sendMessage, newSession } = useACPBridge("ws://127.0.0.1:8420/bridge?token=…");
 *
 * The client lives as long as the component. Whoever shows several sessions takes `BridgeClient` itself.
 */

import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { AgentItem, Conversation, Item, PermissionItem, ToolItem, UserItem } from "../model/conversation";
import { perFrame } from "../model/frame";
import { applyEvents, emptyConversation, withSnapshot } from "../model/reducer";
import { BridgeClient, type ClientOptions, type Hello, type Reply } from "./client";
import type { Incoming } from "./connection";
import type { BridgeEvent, ContentBlock } from "./events";
import type { Entry } from "./outbox";

export interface ChatMessage {
  readonly id: string;
  readonly role: "user" | "agent";
  readonly content: string;
  readonly timestamp: number;
  /** Of an own message: whether the gateway has it. */
  readonly state: "offline" | "sending" | "queued" | "sent" | "failed";
}

export interface ACPBridge {
  readonly client: BridgeClient;
  readonly isConnected: boolean;
  readonly hello: Hello | null;
  readonly conversation: Conversation | null;
  /** What was said, own messages that are on their way included. */
  readonly messages: readonly ChatMessage[];
  /** The text of the message that is being written, "" when none is. */
  readonly currentStreamingMessage: string;
  readonly pendingToolCalls: readonly ToolItem[];
  readonly pendingPermissions: readonly PermissionItem[];
  newSession(cwd: string, agent?: string): Promise<Reply>;
  loadSession(sessionId: string): void;
  sendMessage(content: string | ContentBlock[]): void;
  cancelTurn(): void;
  respondToPermission(requestId: string, outcome: { outcome: "selected" | "cancelled"; optionId?: string }): void;
  changeMode(modeId: string): void;
}

export function useACPBridge(url: string, options?: ClientOptions): ACPBridge {
  const [conversation, setConversation] = useState<Conversation | null>(null);
  const shown = useRef<string | null>(null);
  const first = useRef(options);
  const client = useMemo(() => new BridgeClient(url, first.current), [url]);
  const status = useSyncExternalStore((changed) => client.watch(changed), () => client.status);
  const unsent = useSyncExternalStore((changed) => client.watch(changed), () => client.unsent());

  useEffect(() => {
    const forget = client.on(perFrame((events: Incoming[]) => {
      for (const event of events) if (event.type === "session_created") shown.current ??= (event as { sessionId: string }).sessionId;
      setConversation((before) => events.reduce((made, event) => next(made, event, shown.current), before));
    }));
    client.start();
    return () => {
      forget();
      client.stop();
    };
  }, [client]);

  const loadSession = useCallback((sessionId: string) => {
    if (shown.current !== null) client.leave(shown.current);
    shown.current = sessionId;
    setConversation(null);
    client.open(sessionId);
  }, [client]);

  const newSession = useCallback((cwd: string, agent?: string) => {
    if (shown.current !== null) client.leave(shown.current);
    shown.current = null;
    setConversation(null);
    return client.request({ type: "new_session", cwd, ...(agent === undefined ? {} : { agent }) });
  }, [client]);

  /** What needs a session does nothing without one. */
  const inSession = useCallback((act: (sessionId: string) => void) => { if (shown.current !== null) act(shown.current); }, []);
  return {
    client, conversation, newSession, loadSession,
    isConnected: status.state === "open",
    hello: client.hello,
    messages: useMemo(() => messagesOf(conversation, unsent), [conversation, unsent]),
    currentStreamingMessage: streaming(conversation),
    pendingToolCalls: (conversation?.items ?? []).filter((item) => item.kind === "tool" && (item.status === "pending" || item.status === "in_progress")) as ToolItem[],
    pendingPermissions: (conversation?.items ?? []).filter((item) => item.kind === "permission" && item.answer === null) as PermissionItem[],
    sendMessage: useCallback((content) => inSession((sessionId) => client.sendMessage(sessionId, content)), [client, inSession]),
    cancelTurn: useCallback(() => inSession((sessionId) => client.send({ type: "cancel_turn", sessionId })), [client, inSession]),
    changeMode: useCallback((modeId) => inSession((sessionId) => client.send({ type: "change_mode", sessionId, modeId })), [client, inSession]),
    respondToPermission: useCallback((requestId, outcome) => client.send({ type: "permission_response", requestId, outcome }), [client]),
  };
}

function next(conversation: Conversation | null, event: Incoming, sessionId: string | null): Conversation | null {
  const known = event as BridgeEvent;
  if (!("sessionId" in known) || known.sessionId !== sessionId || sessionId === null) return conversation;
  const before = conversation ?? emptyConversation(sessionId);
  if (known.type === "session_created") return withSnapshot(before, known.session, 0);
  if (known.type === "session_loaded") return withSnapshot(before, known.session, known.afterSeq);
  return applyEvents(before, [event]);
}

function messagesOf(conversation: Conversation | null, unsent: readonly Entry[]): ChatMessage[] {
  const said = (conversation?.items ?? []).flatMap((item: Item): ChatMessage[] =>
    item.kind === "user" || item.kind === "agent" ? [messageOf(item)] : []);
  const own = unsent.flatMap(({ command, at, state }): ChatMessage[] => {
    if (command.type !== "send_message" || command.sessionId !== conversation?.sessionId) return [];
    const content = typeof command.content === "string" ? command.content : textOf(command.content);
    const shown = state === "waiting" ? "offline" : state === "failed" ? "failed" : "sending";
    return [{ id: command.clientMessageId, role: "user", content, timestamp: at, state: shown }];
  });
  return [...said, ...own];
}

function messageOf(item: UserItem | AgentItem): ChatMessage {
  const content = textOf(item.kind === "user" ? item.content : item.parts);
  return { id: item.key, role: item.kind, content, timestamp: item.at, state: item.kind === "user" ? item.state : "sent" };
}

function streaming(conversation: Conversation | null): string {
  const last = conversation?.items[conversation.items.length - 1];
  return last?.kind === "agent" && last.streaming ? textOf(last.parts) : "";
}

function textOf(blocks: readonly ContentBlock[]): string {
  return blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
}
