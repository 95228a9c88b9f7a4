/** What the page does: the bridge's events into the store, the user's wishes to the bridge. */

import { type BridgeClient, BridgeError, newId, type Reply } from "../bridge/client";
import type { Incoming } from "../bridge/connection";
import type { BridgeEvent, ContentBlock, JsonObject, SessionSnapshot, SessionSummary, Wish } from "../bridge/events";
import type { Conversation, ElicitationItem, PermissionItem } from "./conversation";
import { perFrame } from "./frame";
import { withOlder } from "./history";
import { applyEvents, emptyConversation, isConversation, withSnapshot, withSummary } from "./reducer";
import type { PageState, PageStore, Toast } from "./store";
import { titleOf } from "./sessions";

/** How many sessions stay open in the background, so that going back to one is immediate. */
const KEPT_OPEN = 4;
const HISTORY_PAGE = 600;
const UNDO_MS = 7000;
const TOAST_MS = 6000;

type Of<T extends BridgeEvent["type"]> = Extract<BridgeEvent, { type: T }>;

export class Chat {
  private readonly recent: string[] = [];
  private searchTimer: ReturnType<typeof setTimeout> | undefined;
  /** The ids under which pages of the list were asked for; a search's list is none of them. */
  private firstPage = "";
  private olderPage = "";
  /** What was told of sessions since the connection began, until its first page of the list comes; null after that. */
  private told: Map<string, SessionSummary> | null = null;
  /** Deletions that can still be undone: how to do them now. */
  private readonly doomed = new Map<string, () => void>();

  constructor(
    readonly client: BridgeClient,
    readonly store: PageStore,
  ) {
    client.on(perFrame((events: Incoming[]) => this.apply(events)));
    client.watch(() => this.store.setState({ status: client.status, unsent: client.unsent() }));
    this.store.setState({ unsent: client.unsent() });
  }

  // -- events

  private apply(events: Incoming[]): void {
    const streams = new Map<string, Incoming[]>();
    const flush = () => {
      if (streams.size === 0) return;
      this.update(({ conversations }) => {
        const next = new Map(conversations);
        for (const [id, batch] of streams) next.set(id, applyEvents(next.get(id) ?? emptyConversation(id), batch));
        return { conversations: next };
      });
      streams.clear();
    };
    for (const event of events) {
      const { sessionId } = event as { sessionId?: unknown };
      if (typeof sessionId === "string" && (isConversation(event) || event.type === "caught_up")) {
        const batch = streams.get(sessionId);
        if (batch === undefined) streams.set(sessionId, [event]);
        else batch.push(event);
      } else {
        flush(); // a snapshot or a page of history changes what the following events are applied to
        this.loose(event as BridgeEvent);
      }
    }
    flush();
    this.seekQuestions(events);
  }

  private loose(event: BridgeEvent): void {
    switch (event.type) {
      case "hello":
        this.store.setState({ hello: event });
        this.told = new Map();
        this.firstPage = this.client.send({ type: "list_sessions" });
        break;
      case "session_created":
      case "session_loaded":
        this.loaded(event);
        break;
      case "history":
        this.older(event);
        break;
      case "session_list":
        this.listed(event);
        break;
      case "session_changed":
        this.summaries([event.session]);
        this.change(event.session.sessionId, (conversation) => withSummary(conversation, event.session));
        break;
      case "session_deleted":
        this.deleted(event.sessionId);
        break;
      case "error":
        this.failed(event);
        break;
      default: // answers to questions of this page are handled where they were asked
    }
  }

  private loaded(event: Of<"session_created"> | Of<"session_loaded">): void {
    const { session } = event;
    const afterSeq = event.type === "session_loaded" ? event.afterSeq : 0;
    this.update(({ conversations, trouble }) => {
      const before = conversations.get(session.sessionId) ?? emptyConversation(session.sessionId);
      return {
        conversations: new Map(conversations).set(session.sessionId, withSnapshot(before, session, afterSeq)),
        trouble: without(trouble, session.sessionId),
      };
    });
    this.summaries([summaryOf(session)]);
  }

  private older(event: Of<"history">): void {
    this.change(event.sessionId, (conversation) => {
      const late = event.events.filter((one) => one.seq < conversation.firstSeq);
      const joined = withOlder(conversation, late);
      return event.more ? joined : { ...joined, journalFirst: joined.firstSeq };
    });
    this.update(({ loadingOlder }) => ({ loadingOlder: minus(loadingOlder, event.sessionId) }));
  }

  private listed(event: Of<"session_list">): void {
    if (event.clientMessageId === this.firstPage) this.listAnew(event.sessions);
    else if (event.clientMessageId === this.olderPage) this.summaries(event.sessions);
    else return;
    this.store.setState({ nextCursor: event.nextCursor ?? null });
  }

  /** Nothing is kept from before the connection: this page was not told what was deleted or answered meanwhile. */
  private listAnew(sessions: readonly SessionSummary[]): void {
    const told = this.told ?? new Map();
    this.told = null;
    this.store.setState({ sessions: new Map([...sessions.map((one) => [one.sessionId, one] as const), ...told]) });
    const search = this.store.getState().search.trim();
    if (search !== "") void this.find(search);
  }

  private summaries(sessions: readonly SessionSummary[]): void {
    for (const session of sessions) this.told?.set(session.sessionId, session);
    this.update((state) => {
      const next = new Map(state.sessions);
      for (const session of sessions) next.set(session.sessionId, { ...next.get(session.sessionId), ...session });
      return { sessions: next };
    });
  }

  private deleted(sessionId: string): void {
    const session = this.store.getState().sessions?.get(sessionId);
    const mine = this.store.getState().leaving.has(sessionId);
    this.told?.delete(sessionId);
    this.update(({ sessions, conversations, leaving, trouble, current, found }) => ({
      sessions: sessions === null ? null : without(sessions, sessionId),
      found: found.filter((one) => one.sessionId !== sessionId),
      leaving: minus(leaving, sessionId),
      // What was on the screen stays readable: the page says what happened to it.
      conversations: sessionId === current ? conversations : without(conversations, sessionId),
      trouble:
        sessionId === current
          ? new Map(trouble).set(sessionId, {
              code: "session_deleted",
              message: "This session was deleted somewhere else.",
            })
          : trouble,
    }));
    if (!mine && session !== undefined && this.store.getState().current !== sessionId) {
      this.toast(`“${titleOf(session)}” was deleted somewhere else.`);
    }
  }

  private failed(event: Of<"error">): void {
    const { sessionId, code, message, hint } = event;
    if (event.clientMessageId !== undefined && event.clientMessageId === this.creation) return; // the form says it itself
    if (
      sessionId !== undefined &&
      event.clientMessageId !== undefined &&
      this.client.isOpening(sessionId, event.clientMessageId)
    ) {
      this.update(({ trouble }) => ({
        trouble: new Map(trouble).set(sessionId, { code, message, ...(hint === undefined ? {} : { hint }) }),
      }));
    } else if (
      event.clientMessageId === undefined ||
      !this.client.unsent().some((entry) => entry.command.clientMessageId === event.clientMessageId)
    ) {
      this.toast(hint === undefined ? message : `${message} ${hint}`, "error");
    }
  }

  /** A question that is open but older than what was fetched must not be missed: fetch on until it is there. */
  private seekQuestions(events: readonly Incoming[]): void {
    for (const event of events) {
      if (event.type !== "caught_up" && event.type !== "history") continue;
      const { sessionId } = event as { sessionId: string };
      const { sessions, conversations } = this.store.getState();
      const conversation = conversations.get(sessionId);
      if (conversation === undefined || (sessions?.get(sessionId)?.questions ?? 0) === 0) continue;
      if (openQuestions(conversation).length === 0) this.loadOlder(sessionId);
    }
  }

  // -- sessions

  listOlder(cursor: string): void {
    this.olderPage = this.client.send({ type: "list_sessions", cursor });
  }

  search(search: string): void {
    this.store.setState(search === "" ? { search, found: [] } : { search });
    clearTimeout(this.searchTimer);
    if (search.trim() !== "") this.searchTimer = setTimeout(() => void this.find(search.trim()), 200);
  }

  private async find(search: string): Promise<void> {
    const reply = await this.ask({ type: "list_sessions", search });
    if (reply?.type === "session_list" && this.store.getState().search.trim() === search)
      this.store.setState({ found: reply.sessions });
  }

  show(sessionId: string | null): void {
    if (sessionId !== null) {
      this.remember(sessionId);
      this.client.open(sessionId);
    }
    this.store.setState({ current: sessionId });
  }

  private remember(sessionId: string): void {
    const index = this.recent.indexOf(sessionId);
    if (index >= 0) this.recent.splice(index, 1);
    this.recent.unshift(sessionId);
    for (const old of this.recent.splice(KEPT_OPEN)) {
      this.client.leave(old);
      this.update(({ conversations }) => ({ conversations: without(conversations, old) }));
    }
  }

  /** Opens it again after a failure. */
  reopen(sessionId: string): void {
    this.client.leave(sessionId);
    this.update(({ trouble }) => ({ trouble: without(trouble, sessionId) }));
    this.client.open(sessionId);
  }

  /** The id of the last wish for a session. */
  private creation: string | null = null;

  /** The new session's id, or what went wrong. */
  async create(wanted: { cwd: string; agent?: string; sandbox?: string }): Promise<string | BridgeError> {
    this.store.setState({ creating: true });
    this.creation = newId();
    try {
      const reply = await this.client.request({ type: "new_session", ...wanted, clientMessageId: this.creation });
      return reply.type === "session_created" || reply.type === "ack" ? (reply.sessionId ?? "") : "";
    } catch (error) {
      return error instanceof BridgeError ? error : new BridgeError("failed", String(error));
    } finally {
      this.store.setState({ creating: false });
    }
  }

  rename(sessionId: string, title: string): void {
    const session = this.store.getState().sessions?.get(sessionId);
    if (session !== undefined) this.summaries([{ ...session, title }]);
    void this.ask({ type: "rename_session", sessionId, title });
  }

  close(sessionId: string): void {
    void this.ask({ type: "close_session", sessionId });
  }

  /** Gone from the list at once, from the gateway unless the user pressed Undo. */
  remove(sessionId: string): void {
    const session = this.store.getState().sessions?.get(sessionId);
    const stays = () => this.update(({ leaving }) => ({ leaving: minus(leaving, sessionId) }));
    const undo = () => {
      clearTimeout(timer);
      this.doomed.delete(sessionId);
      stays();
    };
    const text = session === undefined ? "Session deleted." : `Deleted “${titleOf(session)}”.`;
    const toast = this.toast(text, "info", { label: "Undo", run: undo }, UNDO_MS);
    const forGood = () => {
      clearTimeout(timer);
      this.doomed.delete(sessionId);
      this.dismiss(toast);
      void this.ask({ type: "delete_session", sessionId }).then((reply) => {
        if (reply === null) stays();
      });
    };
    const timer = setTimeout(forGood, UNDO_MS);
    this.doomed.set(sessionId, forGood);
    this.update(({ leaving }) => ({ leaving: new Set(leaving).add(sessionId) }));
  }

  /** The page goes away: pending deletions are done, since they cannot be undone any more. */
  leavePage(): void {
    for (const forGood of [...this.doomed.values()]) forGood();
  }

  loadOlder(sessionId: string): void {
    const { conversations, loadingOlder } = this.store.getState();
    const conversation = conversations.get(sessionId);
    if (conversation === undefined || loadingOlder.has(sessionId) || !hasOlder(conversation)) return;
    this.update((state) => ({ loadingOlder: new Set(state.loadingOlder).add(sessionId) }));
    void this.ask({ type: "history", sessionId, beforeSeq: conversation.firstSeq, limit: HISTORY_PAGE }).then(
      (reply) => {
        if (reply === null) this.update((state) => ({ loadingOlder: minus(state.loadingOlder, sessionId) }));
      },
    );
  }

  // -- the conversation

  sendMessage(sessionId: string, content: string | ContentBlock[]): void {
    this.client.sendMessage(sessionId, content);
  }

  cancel(sessionId: string): void {
    void this.ask({ type: "cancel_turn", sessionId });
  }

  answerPermission(sessionId: string, requestId: string, optionId: string | null, remember?: Wish): void {
    this.changeQuestion(sessionId, requestId, (item) =>
      item.kind === "permission" ? { ...item, sending: optionId ?? "" } : item,
    );
    const outcome = optionId === null ? { outcome: "cancelled" as const } : { outcome: "selected" as const, optionId };
    const wish = remember === undefined ? {} : { remember };
    void this.ask({ type: "permission_response", requestId, outcome, ...wish }).then((reply) => {
      if (reply === null)
        this.changeQuestion(sessionId, requestId, (item) =>
          item.kind === "permission" ? { ...item, sending: null } : item,
        );
    });
  }

  answerElicitation(
    sessionId: string,
    requestId: string,
    action: "accept" | "decline" | "cancel",
    content?: JsonObject,
  ): void {
    this.changeQuestion(sessionId, requestId, (item) =>
      item.kind === "elicitation" ? { ...item, sending: true } : item,
    );
    void this.ask({
      type: "elicitation_response",
      requestId,
      action,
      ...(content === undefined ? {} : { content }),
    }).then((reply) => {
      if (reply === null)
        this.changeQuestion(sessionId, requestId, (item) =>
          item.kind === "elicitation" ? { ...item, sending: false } : item,
        );
    });
  }

  setMode(sessionId: string, modeId: string): void {
    void this.ask({ type: "change_mode", sessionId, modeId });
  }

  setOption(sessionId: string, configId: string, value: string | boolean): void {
    void this.ask({ type: "set_config_option", sessionId, configId, value });
  }

  editQueued(sessionId: string, queuedId: string, content: string | ContentBlock[]): void {
    void this.ask({ type: "edit_queued", sessionId, queuedId, content });
  }

  dropQueued(sessionId: string, queuedId: string): void {
    void this.ask({ type: "drop_queued", sessionId, queuedId });
  }

  /** Sends one message that is held, or all that wait. */
  sendQueued(sessionId: string, queuedId?: string): void {
    void this.ask({ type: "send_queued", sessionId, ...(queuedId === undefined ? {} : { queuedId }) });
  }

  async paths(prefix: string, options: { sessionId?: string; directories?: boolean }): Promise<Of<"paths">["entries"]> {
    const reply = await this.client.request({ type: "complete_path", prefix, ...options }).catch(() => null);
    return reply?.type === "paths" ? reply.entries : [];
  }

  // -- toasts

  toast(text: string, tone: Toast["tone"] = "info", action?: Toast["action"], lasts = TOAST_MS): string {
    const id = `${Date.now()}${Math.random()}`;
    const toast: Toast = action === undefined ? { id, text, tone } : { id, text, tone, action };
    this.update(({ toasts }) => ({ toasts: [...toasts.slice(-3), toast] }));
    setTimeout(() => this.dismiss(id), lasts);
    return id;
  }

  dismiss(id: string): void {
    this.update(({ toasts }) => ({ toasts: toasts.filter((toast) => toast.id !== id) }));
  }

  // -- small things

  /** The answer, or null after having said what went wrong (`failed` shows the gateway's own errors). */
  private async ask(command: Parameters<BridgeClient["request"]>[0]): Promise<Reply | null> {
    try {
      return await this.client.request(command);
    } catch (error) {
      if (error instanceof BridgeError && (error.code === "offline" || error.code === "no_answer"))
        this.toast(error.message, "error");
      return null;
    }
  }

  private update(change: (state: PageState) => Partial<PageState>): void {
    this.store.setState(change);
  }

  private change(sessionId: string, change: (conversation: Conversation) => Conversation): void {
    this.update(({ conversations }) => {
      const conversation = conversations.get(sessionId);
      return conversation === undefined
        ? {}
        : { conversations: new Map(conversations).set(sessionId, change(conversation)) };
    });
  }

  private changeQuestion(
    sessionId: string,
    requestId: string,
    change: (item: PermissionItem | ElicitationItem) => PermissionItem | ElicitationItem,
  ): void {
    this.change(sessionId, (conversation) => {
      const place = conversation.places.questions.get(requestId);
      const item = place === undefined ? undefined : conversation.items[place];
      if (place === undefined || (item?.kind !== "permission" && item?.kind !== "elicitation")) return conversation;
      return { ...conversation, items: conversation.items.with(place, change(item)) };
    });
  }
}

export function hasOlder(conversation: Conversation): boolean {
  return conversation.firstSeq > Math.max(1, conversation.journalFirst);
}

export function openQuestions(conversation: Conversation): (PermissionItem | ElicitationItem)[] {
  const open: (PermissionItem | ElicitationItem)[] = [];
  for (const place of conversation.places.questions.values()) {
    const item = conversation.items[place];
    if ((item?.kind === "permission" || item?.kind === "elicitation") && item.answer === null) open.push(item);
  }
  return open;
}

function summaryOf(session: SessionSnapshot): SessionSummary {
  const { sessionId, agent, cwd, title, state, live, updatedAt, clients, questions } = session;
  return {
    sessionId,
    agent,
    cwd,
    title,
    state,
    live,
    updatedAt,
    clients,
    questions,
    ...(session.workspace === undefined ? {} : { workspace: session.workspace }),
    ...(session.createdAt === undefined ? {} : { createdAt: session.createdAt }),
    ...(session.sandbox === undefined ? {} : { sandbox: session.sandbox }),
  };
}

function without<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
  if (!map.has(key)) return map;
  const next = new Map(map);
  next.delete(key);
  return next;
}

function minus<T>(set: ReadonlySet<T>, value: T): ReadonlySet<T> {
  if (!set.has(value)) return set;
  const next = new Set(set);
  next.delete(value);
  return next;
}
