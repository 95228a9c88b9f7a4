/** A scripted bridge over real sockets: it notes what it hears and says what the test tells it to. */

import { WebSocket, WebSocketServer } from "ws";
import type { AddressInfo } from "node:net";
import type { BridgeCommand, JournalEvent, SessionSnapshot } from "../../src/bridge/events";
import type { Keeper } from "../../src/bridge/outbox";

// Browsers have one; node 20 has not.
globalThis.WebSocket = WebSocket as unknown as typeof globalThis.WebSocket;

export type Heard = BridgeCommand & { clientMessageId?: string };

export const HELLO = {
  type: "hello",
  version: "1.0.0",
  bridge: 1,
  role: "admin",
  agents: [],
  defaultAgent: "scripted",
  sandboxes: [],
  home: "/home/me",
  folder: "/home/me/work",
  limits: { maxMessageBytes: 1000 },
} as const;

export function snapshot(sessionId: string, more: Partial<SessionSnapshot> = {}): SessionSnapshot {
  return {
    sessionId,
    agent: "scripted",
    cwd: "/work",
    title: null,
    state: "idle",
    live: true,
    updatedAt: "2026-11-16T00:00:00Z",
    clients: 1,
    questions: 0,
    firstSeq: 1,
    lastSeq: 0,
    modes: null,
    configOptions: [],
    commands: [],
    queue: [],
    usage: null,
    plan: [],
    promptCapabilities: { image: true, audio: false, embeddedContext: true },
    ...more,
  };
}

export function chunk(sessionId: string, seq: number, content: string): JournalEvent {
  return { type: "message_chunk", sessionId, seq, timestamp: "2026-11-16T00:00:00Z", content };
}

/** A browser's storage. */
export class Memory implements Keeper {
  private readonly values = new Map<string, string>();
  get length() {
    return this.values.size;
  }
  key(index: number) {
    return [...this.values.keys()][index] ?? null;
  }
  getItem(key: string) {
    return this.values.get(key) ?? null;
  }
  setItem(key: string, value: string) {
    this.values.set(key, value);
  }
  removeItem(key: string) {
    this.values.delete(key);
  }
}

export class ScriptedBridge {
  readonly heard: Heard[] = [];
  connections = 0;
  /** What to do with a command; by default nothing. */
  onCommand: (command: Heard, bridge: ScriptedBridge) => void = () => undefined;
  /** False: sockets are accepted and nothing is said, as a dead gateway behind a proxy does. */
  greets = true;
  private server: WebSocketServer;
  private waiters: { holds: () => boolean; resolve: () => void }[] = [];

  readonly port: number;

  private constructor(server: WebSocketServer) {
    this.server = server;
    this.port = (server.address() as AddressInfo).port;
    this.listen();
  }

  static async start(port = 0): Promise<ScriptedBridge> {
    return new ScriptedBridge(await listening(port));
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}/bridge`;
  }

  private listen(): void {
    this.server.on("connection", (socket) => {
      this.connections += 1;
      if (this.greets) socket.send(JSON.stringify(HELLO));
      socket.on("message", (data) => {
        const command = JSON.parse(String(data)) as Heard;
        this.heard.push(command);
        this.onCommand(command, this);
        this.look();
      });
      this.look();
    });
  }

  say(...events: object[]): void {
    for (const socket of this.server.clients) for (const event of events) socket.send(JSON.stringify(event));
  }

  sayRaw(text: string): void {
    for (const socket of this.server.clients) socket.send(text);
  }

  /** The connection breaks without a goodbye. */
  cut(): void {
    for (const socket of this.server.clients) socket.terminate();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async restart(): Promise<void> {
    const { port } = this;
    await this.stop();
    this.server = await listening(port);
    this.listen();
  }

  of(type: string): Heard[] {
    return this.heard.filter((command) => command.type === type);
  }

  async until(holds: () => boolean): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve) => this.waiters.push({ holds, resolve }));
  }

  private look(): void {
    this.waiters = this.waiters.filter(({ holds, resolve }) => {
      if (!holds()) return true;
      resolve();
      return false;
    });
  }
}

async function listening(port: number): Promise<WebSocketServer> {
  const server = new WebSocketServer({ host: "127.0.0.1", port });
  await new Promise((resolve) => server.once("listening", resolve));
  return server;
}
