/**
 * One WebSocket that is always being kept up: backoff with jitter, half-open detection, and what the state is.
 *
 *     connecting ──hello──▶ open ──lost──▶ waiting ──timer──▶ connecting
 *                                             └──401──▶ unauthorized  (stays until `retry`)
 *
 * A socket counts as open when the bridge has said `hello`, not when the handshake was done: a proxy accepts
 * handshakes for a gateway that is not there.
 */

import type { BridgeEvent } from "./events";

export type ConnectionState = "connecting" | "open" | "waiting" | "unauthorized" | "stopped";

/** Anything that the bridge may send, also what this version has no name for. */
export type Incoming = BridgeEvent | { type: string; [field: string]: unknown };

export interface Timings {
  /** The first wait before a new attempt; it doubles until `longest`. Real waits are half of it up to all of it. */
  first: number;
  longest: number;
  /** How long a connection may be silent before it is asked, and how long the answer may take. */
  silence: number;
  answer: number;
  /** How long the handshake and `hello` may take together. */
  opening: number;
}

export const TIMINGS: Timings = { first: 400, longest: 20_000, silence: 20_000, answer: 10_000, opening: 15_000 };

export interface ConnectionOptions {
  url: string;
  /** Subprotocols to offer, asked for at each attempt. */
  protocols?: () => string[];
  timings?: Partial<Timings>;
  /** Asked after a failed attempt: is it the token? Browsers do not say why a handshake failed. */
  isUnauthorized?: () => Promise<boolean>;
  random?: () => number;
}

export interface ConnectionHandlers {
  event(event: Incoming): void;
  state(state: ConnectionState): void;
}

export class Connection {
  state: ConnectionState = "stopped";
  /** Failed attempts since it was last open. */
  attempt = 0;
  /** When the next attempt begins, in milliseconds since 1970; 0 when none is planned. */
  retryAt = 0;
  private socket: WebSocket | null = null;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private lifeTimer: ReturnType<typeof setTimeout> | undefined;
  private lastHeard = 0;
  private asked = false;
  private readonly timings: Timings;
  private readonly random: () => number;

  constructor(
    private readonly options: ConnectionOptions,
    private readonly handlers: ConnectionHandlers,
  ) {
    this.timings = { ...TIMINGS, ...options.timings };
    this.random = options.random ?? Math.random;
  }

  start(): void {
    if (this.state === "stopped") this.connect();
  }

  stop(): void {
    this.drop();
    this.enter("stopped");
  }

  /** Connect at once instead of at the end of the wait: the network is back, the user pressed the button. */
  retry(): void {
    if (this.state === "waiting" || this.state === "unauthorized") this.connect();
  }

  /** Ask a connection that may be dead (the laptop slept) whether it lives. */
  check(): void {
    if (this.state === "open") this.ask();
    else this.retry();
  }

  /** False when there is no open connection: nothing was sent. */
  send(message: object): boolean {
    if (this.state !== "open" || this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  private connect(): void {
    this.drop();
    this.enter("connecting");
    const socket = new WebSocket(this.options.url, this.options.protocols?.() ?? []);
    this.socket = socket;
    this.lifeTimer = setTimeout(() => this.lost(socket), this.timings.opening);
    socket.onmessage = (message) => this.received(socket, String(message.data));
    socket.onclose = () => this.lost(socket);
    socket.onerror = () => undefined; // a close follows, and says as much
  }

  private received(socket: WebSocket, text: string): void {
    if (socket !== this.socket) return;
    let event: Incoming;
    try {
      event = JSON.parse(text) as Incoming;
    } catch {
      event = { type: "error", code: "bad_event", message: "The gateway sent something that is no event." };
    }
    if (this.state === "connecting" && event.type === "hello") {
      this.attempt = 0;
      this.rearm(this.timings.silence);
      this.enter("open");
    }
    this.heard();
    this.handlers.event(event);
  }

  /** Only notes the time: events may come hundreds of times a second, and timers are not for nothing. */
  private heard(): void {
    this.lastHeard = Date.now();
    if (this.asked) this.rearm(this.timings.silence);
  }

  private rearm(delay: number): void {
    clearTimeout(this.lifeTimer);
    this.asked = false;
    this.lifeTimer = setTimeout(() => this.listened(), delay);
  }

  private listened(): void {
    const quiet = Date.now() - this.lastHeard;
    if (quiet < this.timings.silence) this.rearm(this.timings.silence - quiet);
    else this.ask();
  }

  private ask(): void {
    const socket = this.socket;
    if (socket === null || this.asked) return;
    this.send({ type: "ping" });
    clearTimeout(this.lifeTimer);
    this.asked = true;
    this.lifeTimer = setTimeout(() => this.lost(socket), this.timings.answer);
  }

  private lost(socket: WebSocket): void {
    if (socket !== this.socket) return;
    this.drop();
    const ceiling = Math.min(this.timings.longest, this.timings.first * 2 ** this.attempt);
    const delay = ceiling * (0.5 + this.random() / 2);
    this.attempt += 1;
    this.retryAt = Date.now() + delay;
    this.retryTimer = setTimeout(() => this.connect(), delay);
    this.enter("waiting");
    void this.askWhy();
  }

  private async askWhy(): Promise<void> {
    const unauthorized = (await this.options.isUnauthorized?.().catch(() => false)) ?? false;
    if (unauthorized && this.state === "waiting") {
      this.drop();
      this.enter("unauthorized");
    }
  }

  private drop(): void {
    clearTimeout(this.retryTimer);
    clearTimeout(this.lifeTimer);
    this.lifeTimer = undefined;
    this.asked = false;
    this.retryAt = 0;
    const socket = this.socket;
    this.socket = null;
    if (socket === null) return;
    socket.onmessage = null;
    socket.onclose = null;
    socket.close();
  }

  private enter(state: ConnectionState): void {
    this.state = state;
    this.handlers.state(state);
  }
}
