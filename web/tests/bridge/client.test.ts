import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { BridgeClient, type ClientOptions } from "../../src/bridge/client";
import type { Incoming } from "../../src/bridge/connection";
import { chunk, type Heard, Memory, ScriptedBridge, snapshot } from "./gateway";

const QUICK = { first: 10, longest: 40, silence: 60, answer: 60, opening: 200 };
const until = (holds: () => void) => vi.waitFor(holds, { timeout: 3000, interval: 5 });

let bridge: ScriptedBridge;
let clients: BridgeClient[] = [];

function connect(options: ClientOptions = {}): { client: BridgeClient; events: Incoming[] } {
  const client = new BridgeClient(bridge.url, { timings: QUICK, tail: 100, ...options });
  const events: Incoming[] = [];
  client.on((event) => events.push(event));
  clients.push(client);
  client.start();
  return { client, events };
}

const opened = (client: BridgeClient) => until(() => expect(client.status.state).toBe("open"));

beforeEach(async () => {
  bridge = await ScriptedBridge.start();
});
afterEach(async () => {
  for (const client of clients) client.stop();
  clients = [];
  await bridge.stop();
});

describe("the connection", () => {
  test("is open when the bridge has said hello", async () => {
    const { client, events } = connect();
    await opened(client);
    expect(client.hello?.home).toBe("/home/me");
    expect(events[0]?.type).toBe("hello");
  });

  test("comes back after it broke", async () => {
    const { client } = connect();
    await opened(client);
    bridge.cut();
    await bridge.until(() => bridge.connections === 2);
    await opened(client);
  });

  test("comes back after the gateway was restarted", async () => {
    const { client } = connect();
    await opened(client);
    await bridge.restart();
    await bridge.until(() => bridge.connections === 2);
    await opened(client);
  });

  test("is not believed when it is silent", async () => {
    const { client } = connect();
    await opened(client);
    await bridge.until(() => bridge.of("ping").length > 0); // never answered
    await bridge.until(() => bridge.connections === 2);
  });

  test("is kept as long as something comes", async () => {
    const { client } = connect();
    bridge.onCommand = (command, { say }) => {
      if (command.type === "ping") say.call(bridge, { type: "ack" });
    };
    await opened(client);
    await bridge.until(() => bridge.of("ping").length >= 3);
    expect(bridge.connections).toBe(1);
  });

  test("is tried again when nobody says hello", async () => {
    bridge.greets = false;
    const { client } = connect();
    await bridge.until(() => bridge.connections === 1);
    bridge.greets = true;
    await bridge.until(() => bridge.connections === 2);
    await opened(client);
  });

  test("waits longer after each failure, never the same for everybody", async () => {
    const port = bridge.port;
    await bridge.stop();
    const waits: number[] = [];
    const { client } = connect({ random: () => 1 });
    client.watch(() => {
      if (client.status.state === "waiting") waits.push(client.status.retryAt - Date.now());
    });
    await until(() => expect(waits.length).toBeGreaterThanOrEqual(4));
    expect(waits[0]).toBeLessThanOrEqual(10);
    expect(Math.max(...waits)).toBeLessThanOrEqual(40);
    expect(waits[3]).toBeGreaterThan(waits[0] ?? 0);
    bridge = await ScriptedBridge.start(port);
    await opened(client);
    expect(client.status.attempt).toBe(0);
  });

  test("stops asking when the token is refused, until it is told to", async () => {
    await bridge.stop();
    let refused = true;
    const port = bridge.port;
    const { client } = connect({ isUnauthorized: async () => refused });
    await until(() => expect(client.status.state).toBe("unauthorized"));
    bridge = await ScriptedBridge.start(port);
    refused = false;
    client.retry();
    await opened(client);
  });
});

describe("events", () => {
  const session = (bridge: ScriptedBridge, events: object[]) => {
    bridge.onCommand = (command) => {
      if (command.type !== "load_session" && command.type !== "resume") return;
      const afterSeq = "afterSeq" in command ? (command.afterSeq ?? 0) : 0;
      bridge.say({
        type: "session_loaded",
        sessionId: "s",
        session: snapshot("s", { lastSeq: events.length }),
        afterSeq,
      });
      bridge.say(...events.slice(afterSeq), { type: "caught_up", sessionId: "s", lastSeq: events.length });
    };
  };
  const seqs = (events: Incoming[]) => events.flatMap((event) => ("seq" in event ? [event.seq] : []));

  test("are resumed after the last one that was seen, and none comes twice", async () => {
    const journal = [chunk("s", 1, "a"), chunk("s", 2, "b")];
    session(bridge, journal);
    const { client, events } = connect();
    await opened(client);
    client.open("s");
    await until(() => expect(seqs(events)).toEqual([1, 2]));
    bridge.cut();
    journal.push(chunk("s", 3, "c"));
    await bridge.until(() => bridge.of("resume").length === 1);
    expect(bridge.of("resume")[0]).toMatchObject({ sessionId: "s", afterSeq: 2 });
    await until(() => expect(seqs(events)).toEqual([1, 2, 3]));
    bridge.say(journal[1] as object); // an old one again
    bridge.say(chunk("s", 4, "d"));
    await until(() => expect(seqs(events)).toEqual([1, 2, 3, 4]));
  });

  test("with a gap are asked for again", async () => {
    const journal = [chunk("s", 1, "a")];
    session(bridge, journal);
    const { client, events } = connect();
    await opened(client);
    client.open("s");
    await until(() => expect(seqs(events)).toEqual([1]));
    journal.push(chunk("s", 2, "b"), chunk("s", 3, "c"));
    bridge.say(journal[2] as object);
    await until(() => expect(seqs(events)).toEqual([1, 2, 3]));
  });

  test("with a gap are asked for once, however many come before the answer", async () => {
    const { client, events } = connect();
    const journal = [chunk("s", 1, "a")];
    session(bridge, journal);
    await opened(client);
    client.open("s");
    await until(() => expect(seqs(events)).toEqual([1]));
    const answer = bridge.onCommand;
    bridge.onCommand = () => undefined; // the answer takes its time
    for (const seq of [2, 3, 4, 5]) journal.push(chunk("s", seq, "x"));
    bridge.say(...journal.slice(2));
    await bridge.until(() => bridge.of("resume").length === 1);
    bridge.say({ type: "marker" });
    await until(() => expect(events.at(-1)).toMatchObject({ type: "marker" }));
    answer(bridge.of("resume")[0] as Heard, bridge);
    await until(() => expect(seqs(events)).toEqual([1, 2, 3, 4, 5]));
    expect(bridge.of("resume")).toHaveLength(1);
  });

  test("of a kind that nobody knows are passed on", async () => {
    const { client, events } = connect();
    await opened(client);
    bridge.say({ type: "aurora", colour: "green" });
    await until(() => expect(events).toContainEqual({ type: "aurora", colour: "green" }));
  });

  test("that are no JSON are reported and do no harm", async () => {
    const { client, events } = connect();
    await opened(client);
    bridge.sayRaw("{nonsense");
    await until(() => expect(events.at(-1)).toMatchObject({ type: "error", code: "bad_event" }));
    bridge.say({ type: "after" });
    await until(() => expect(events.at(-1)).toMatchObject({ type: "after" }));
  });

  test("of a session that was left do not arrive", async () => {
    session(bridge, [chunk("s", 1, "a")]);
    const { client, events } = connect();
    await opened(client);
    client.open("s");
    await until(() => expect(seqs(events)).toEqual([1]));
    client.leave("s");
    await bridge.until(() => bridge.of("leave_session").length === 1);
    bridge.say(chunk("s", 2, "b"), { type: "marker" });
    await until(() => expect(events.at(-1)).toMatchObject({ type: "marker" }));
    expect(seqs(events)).toEqual([1]);
  });
});

describe("messages", () => {
  test("are acknowledged and then shown by the journal", async () => {
    const { client } = connect();
    await opened(client);
    const id = client.sendMessage("s", "hello");
    await bridge.until(() => bridge.of("send_message").length === 1);
    expect(client.unsent()[0]).toMatchObject({ state: "sent", command: { clientMessageId: id, content: "hello" } });
    bridge.say({ type: "ack", clientMessageId: id });
    await until(() => expect(client.unsent()[0]?.state).toBe("accepted"));
    bridge.say({ type: "queue_changed", sessionId: "t", queue: [{ clientMessageId: id, content: [] }] });
    await until(() => expect(client.unsent()).toEqual([]));
  });

  test("written offline are sent in order when the connection is back", async () => {
    const { client } = connect();
    await opened(client);
    const { port } = bridge;
    await bridge.stop();
    await until(() => expect(client.status.state).not.toBe("open"));
    client.sendMessage("s", "one");
    client.sendMessage("s", "two");
    await until(() => expect(client.status.unsent).toBe(2));
    bridge = await ScriptedBridge.start(port);
    await bridge.until(() => bridge.of("send_message").length === 2);
    expect(bridge.of("send_message").map((command) => "content" in command && command.content)).toEqual(["one", "two"]);
  });

  test("that were on their way are sent again under the same id", async () => {
    const { client } = connect();
    await opened(client);
    const id = client.sendMessage("s", "once");
    await bridge.until(() => bridge.of("send_message").length === 1);
    bridge.cut();
    await bridge.until(() => bridge.of("send_message").length === 2);
    expect(bridge.of("send_message").map((command) => command.clientMessageId)).toEqual([id, id]);
  });

  test("survive the page", async () => {
    const keeper = new Memory();
    const { port } = bridge;
    await bridge.stop();
    const first = connect({ keeper });
    const id = first.client.sendMessage("s", "kept");
    first.client.stop();
    bridge = await ScriptedBridge.start(port);
    const { client } = connect({ keeper });
    await bridge.until(() => bridge.of("send_message").length === 1);
    expect(bridge.of("send_message")[0]?.clientMessageId).toBe(id);
    bridge.say({ type: "ack", clientMessageId: id });
    await until(() => expect(keeper.length).toBe(0));
    expect(client.fragile).toBe(false);
  });

  test("that fit into no storage are still sent, and known to be fragile", async () => {
    const keeper = new Memory();
    keeper.setItem = () => {
      throw new Error("QuotaExceededError");
    };
    const { port } = bridge;
    await bridge.stop();
    const { client } = connect({ keeper });
    client.sendMessage("s", "large");
    expect(client.fragile).toBe(true);
    bridge = await ScriptedBridge.start(port);
    await bridge.until(() => bridge.of("send_message").length === 1);
  });

  test("that were refused are kept with the reason, and can be sent again", async () => {
    const { client } = connect();
    await opened(client);
    const id = client.sendMessage("s", "no");
    await bridge.until(() => bridge.of("send_message").length === 1);
    bridge.say({ type: "error", code: "no_session", message: "There is no such session.", clientMessageId: id });
    await until(() => expect(client.unsent()[0]).toMatchObject({ state: "failed", error: { code: "no_session" } }));
    client.resend(id);
    await bridge.until(() => bridge.of("send_message").length === 2);
    client.discard(id);
    expect(client.unsent()).toEqual([]);
  });
});

describe("requests", () => {
  test("get what answers them", async () => {
    bridge.onCommand = (command) => {
      if (command.type === "complete_path")
        bridge.say({ type: "paths", prefix: "/", entries: [], clientMessageId: command.clientMessageId });
    };
    const { client } = connect();
    await opened(client);
    expect(await client.request({ type: "complete_path", prefix: "/" })).toMatchObject({ type: "paths" });
  });

  test("fail with the bridge's error", async () => {
    bridge.onCommand = (command) =>
      bridge.say({
        type: "error",
        code: "no",
        message: "No.",
        hint: "Try yes.",
        clientMessageId: command.clientMessageId,
      });
    const { client } = connect();
    await opened(client);
    await expect(client.request({ type: "list_sessions" })).rejects.toMatchObject({ code: "no", hint: "Try yes." });
  });

  test("for the moment fail without a connection; a cancel is not done later", async () => {
    await bridge.stop();
    const { client } = connect();
    await expect(client.request({ type: "cancel_turn", sessionId: "s" })).rejects.toMatchObject({ code: "offline" });
  });

  test("that nobody answers end", async () => {
    const { client } = connect({ patience: 30 });
    await opened(client);
    await expect(client.request({ type: "list_sessions" })).rejects.toMatchObject({ code: "no_answer" });
  });

  test("in flight fail when the connection breaks, lasting ones are sent again", async () => {
    const { client } = connect();
    await opened(client);
    const list = client.request({ type: "list_sessions" });
    const rename = client.request({ type: "rename_session", sessionId: "s", title: "t" });
    await bridge.until(() => bridge.heard.length >= 2);
    bridge.onCommand = (command) => bridge.say({ type: "ack", clientMessageId: command.clientMessageId });
    bridge.cut();
    await expect(list).rejects.toMatchObject({ code: "offline" });
    expect(await rename).toMatchObject({ type: "ack" });
  });
});
