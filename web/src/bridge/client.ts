/**
 * The bridge's client without any framework: commands go in, events come out, in order and once each.
 *
 * The sessions that are open here are resumed on every new connection from the last event that was seen, so a
 * listener never sees one twice and never misses one. A listener that throws does not disturb the others.
 */

import { Connection, type ConnectionOptions, type ConnectionState, type Incoming } from "./connection";
import type { BridgeCommand, BridgeEvent, ContentBlock, LooseEvent, StopError } from "./events";
import { type Command, type Entry, isLasting, type Keeper, Outbox } from "./outbox";

export interface ClientOptions extends Omit<ConnectionOptions, "url"> {
  /** Where unsent messages are kept; null keeps them only as long as the page. */
  keeper?: Keeper | null;
  /** How many of a session's last events are fetched when it is opened; older ones come with `history`. */
  tail?: number;
  /** How long `request` waits for the answer to what is not worth sending later. */
  patience?: number;
}

export interface Status {
  readonly state: ConnectionState;
  readonly attempt: number;
  readonly retryAt: number;
  /** Commands that the gateway has not confirmed. */
  readonly unsent: number;
}

export type Hello = Extract<LooseEvent, { type: "hello" }>;
export type Reply = Extract<LooseEvent, { clientMessageId?: string }>;

export class BridgeError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint?: string,
  ) {
    super(message);
  }
}

/** What `clientMessageId` lets out of a command: it is filled in. */
export type Sendable = BridgeCommand;

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: BridgeError): void;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * Where we are in a session: `seen` is the last event that listeners got, null before the first answer. `asked` is the
 * id of the last load, until `session_loaded` answers it.
 */
interface Place {
  seen: number | null;
  asked: string | null;
  /** Of the journal in which `seen` was seen. */
  epoch?: number | undefined;
}

const PREFIX = "dragoman.outbox.";

export class BridgeClient {
  hello: Hello | null = null;
  status: Status = { state: "stopped", attempt: 0, retryAt: 0, unsent: 0 };
  private readonly connection: Connection;
  private readonly outbox: Outbox;
  private readonly places = new Map<string, Place>();
  private readonly waiting = new Map<string, Waiting>();
  private readonly listeners = new Set<(event: Incoming) => void>();
  private readonly watchers = new Set<() => void>();
  private readonly tail: number;
  private readonly patience: number;
  private listening = false;

  constructor(url: string, options: ClientOptions = {}) {
    this.tail = options.tail ?? 600;
    this.patience = options.patience ?? 60_000;
    this.outbox = new Outbox(options.keeper ?? null, PREFIX, () => this.changed());
    this.connection = new Connection(
      { ...options, url },
      {
        event: (event) => this.received(event),
        state: (state) => this.entered(state),
      },
    );
  }

  start(): void {
    this.connection.start();
  }

  stop(): void {
    this.connection.stop();
  }

  retry(): void {
    this.connection.retry();
  }

  /** After sleep, or when the page is shown again: is the connection still alive? */
  check(): void {
    this.connection.check();
  }

  /** Every event, also those without a name here. Returns how to stop listening. */
  on(listener: (event: Incoming) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Called when `status` or `unsent()` changed. */
  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** What was asked for and is not confirmed, oldest first. Keeps its identity until it changes. */
  unsent(): readonly Entry[] {
    return this.outbox.list();
  }

  /** Something waits to be sent and could not be stored: leaving the page would lose it. */
  get fragile(): boolean {
    return this.outbox.fragile;
  }

  /** Sends, now or when there is a connection again. Returns the id by which it will be acknowledged. */
  send(command: Sendable): string {
    const named: Command = { ...command, clientMessageId: command.clientMessageId ?? newId() };
    if (isLasting(named)) {
      this.outbox.add(named);
      if (this.connection.send(named)) this.outbox.mark(named.clientMessageId, "sent");
    } else if (!this.connection.send(named)) {
      this.refuse(named.clientMessageId, new BridgeError("offline", "There is no connection to the gateway."));
    }
    return named.clientMessageId;
  }

  /** Sends and waits for what answers it; rejects with a `BridgeError`. Lasting commands wait for a connection. */
  request(command: Sendable): Promise<Reply> {
    const id = command.clientMessageId ?? newId();
    return new Promise<Reply>((resolve, reject) => {
      const late = () => this.refuse(id, new BridgeError("no_answer", "The gateway did not answer in time."));
      const timer = isLasting(command) ? undefined : setTimeout(late, this.patience);
      this.waiting.set(id, { resolve, reject, timer });
      this.send({ ...command, clientMessageId: id });
    });
  }

  sendMessage(sessionId: string, content: string | ContentBlock[]): string {
    return this.send({ type: "send_message", sessionId, content });
  }

  /** From now on this session's events arrive, the last `tail` of those that happened included. */
  open(sessionId: string): void {
    if (this.places.has(sessionId)) return;
    this.places.set(sessionId, { seen: null, asked: null });
    this.load(sessionId);
  }

  leave(sessionId: string): void {
    if (this.places.delete(sessionId)) this.connection.send({ type: "leave_session", sessionId });
  }

  isOpen(sessionId: string): boolean {
    return this.places.has(sessionId);
  }

  /** Whether this id is that of the attempt to open the session: its error means that no events will come. */
  isOpening(sessionId: string, id: string): boolean {
    return this.places.get(sessionId)?.asked === id;
  }

  /** Tries a failed command again, under the same id: if it did arrive, it is not done twice. */
  resend(id: string): void {
    const entry = this.outbox.get(id);
    if (entry === undefined) return;
    this.outbox.mark(id, this.connection.send(entry.command) ? "sent" : "waiting");
  }

  discard(id: string): void {
    this.outbox.remove(id);
  }

  private load(sessionId: string): void {
    const place = this.places.get(sessionId);
    if (place === undefined) return;
    const from =
      place.seen === null
        ? { type: "load_session" as const }
        : {
            type: "resume" as const,
            afterSeq: place.seen,
            ...(place.epoch === undefined ? {} : { epoch: place.epoch }),
          };
    place.asked = newId();
    this.connection.send({ ...from, sessionId, tail: this.tail, clientMessageId: place.asked });
  }

  private entered(state: ConnectionState): void {
    if (state === "waiting" || state === "stopped") {
      this.outbox.recall();
      for (const [id] of this.waiting) {
        if (this.outbox.get(id) === undefined) this.refuse(id, new BridgeError("offline", "The connection was lost."));
      }
    }
    this.changed();
  }

  private greeted(hello: Hello): void {
    this.hello = hello;
    for (const sessionId of this.places.keys()) this.load(sessionId);
    for (const command of this.outbox.due()) {
      if (this.connection.send(command)) this.outbox.mark(command.clientMessageId, "sent");
    }
  }

  private received(event: Incoming): void {
    if (!this.inOrder(event)) return;
    this.tell(event);
    if (event.type === "hello") this.greeted(event as Hello);
    for (const shown of this.shownBy(event as BridgeEvent)) this.outbox.remove(shown);
    const id = (event as { clientMessageId?: unknown }).clientMessageId;
    if (typeof id === "string") this.answered(id, event);
  }

  /** False for what was seen before. A gap is asked for again instead of being shown with a hole. */
  private inOrder(event: Incoming): boolean {
    const { sessionId } = event as { sessionId?: unknown };
    const place = typeof sessionId === "string" ? this.places.get(sessionId) : undefined;
    if (event.type === "session_loaded") {
      if (place === undefined) {
        this.connection.send({ type: "leave_session", sessionId: sessionId as string }); // a message to it has attached us
        return false;
      }
      place.seen = (event as { afterSeq: number }).afterSeq;
      place.epoch = (event as { session?: { epoch?: number } }).session?.epoch;
      place.asked = null;
      return true;
    }
    if (event.type === "session_created" && typeof sessionId === "string") {
      this.places.set(sessionId, { seen: 0, asked: null });
      return true;
    }
    if (event.type === "session_deleted" && typeof sessionId === "string") this.places.delete(sessionId);
    const { seq } = event as { seq?: unknown };
    if (typeof seq !== "number") return true;
    if (place === undefined || place.seen === null || seq <= place.seen) return false;
    const { firstSeq } = event as { firstSeq?: unknown };
    const first = event.type === "events_lost" && typeof firstSeq === "number" ? firstSeq : seq;
    if (first > place.seen + 1) {
      if (place.asked === null) this.load(sessionId as string);
      return false;
    }
    place.seen = seq;
    return true;
  }

  /** Messages that are in the journal or in the session's queue with this event: they are drawn from there now. */
  private shownBy(event: BridgeEvent): string[] {
    const accepted = (sessionId: string) =>
      this.outbox
        .list()
        .flatMap(({ command, state }) =>
          state === "accepted" && command.type === "send_message" && command.sessionId === sessionId
            ? [command.clientMessageId]
            : [],
        );
    switch (event.type) {
      case "user_message":
        if (event.author === "agent") return [];
        return event.clientMessageId === undefined ? accepted(event.sessionId).slice(0, 1) : [event.clientMessageId];
      case "queue_changed":
        return event.queue.map((queued) => queued.clientMessageId);
      case "session_loaded":
        return event.session.queue.map((queued) => queued.clientMessageId);
      case "caught_up":
        return accepted(event.sessionId);
      default:
        return [];
    }
  }

  private answered(id: string, event: Incoming): void {
    if (event.type === "error") {
      const { code, message, hint } = event as unknown as StopError;
      this.refuse(id, new BridgeError(code, message, hint));
      return;
    }
    const entry = this.outbox.get(id);
    if (entry?.command.type === "send_message" && event.type === "ack") this.outbox.mark(id, "accepted");
    else if (entry !== undefined) this.outbox.remove(id);
    const waiting = this.waiting.get(id);
    if (waiting === undefined) return;
    this.waiting.delete(id);
    clearTimeout(waiting.timer);
    waiting.resolve(event as Reply);
  }

  private refuse(id: string, error: BridgeError): void {
    const entry = this.outbox.get(id);
    const { code, message, hint } = error;
    // A message that the user typed is kept in any case; anything else is over.
    if (entry?.command.type === "send_message")
      this.outbox.mark(id, "failed", hint === undefined ? { code, message } : { code, message, hint });
    else this.outbox.remove(id);
    const waiting = this.waiting.get(id);
    if (waiting === undefined) return;
    this.waiting.delete(id);
    clearTimeout(waiting.timer);
    waiting.reject(error);
  }

  private tell(event: Incoming): void {
    for (const listener of this.listeners) {
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        }); // to the page's error handler, not to the socket's
      }
    }
  }

  private changed(): void {
    if (this.listening) return;
    // Many changes in one go (a flush, a lost connection) are one change to look at.
    this.listening = true;
    queueMicrotask(() => {
      this.listening = false;
      const { state, attempt, retryAt } = this.connection;
      this.status = { state, attempt, retryAt, unsent: this.outbox.due().length };
      for (const watcher of this.watchers) watcher();
    });
  }
}

export function newId(): string {
  // randomUUID is for secure contexts only, and a phone may look at http://192.168.0.2:8420.
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
