// @vitest-environment jsdom
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type ACPBridge, useACPBridge } from "../../src/bridge/react";
import { chunk, ScriptedBridge, snapshot } from "./gateway";

let bridge: ScriptedBridge;
let seen: ACPBridge; // as the component last saw it
let unmount: () => void;
const until = (holds: () => void) => vi.waitFor(holds, { timeout: 3000, interval: 10 });

beforeEach(async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
  seen = undefined as never;
  bridge = await ScriptedBridge.start();
  const Probe = () => {
    seen = useACPBridge(bridge.url);
    return null;
  };
  const root = createRoot(document.createElement("div"));
  root.render(createElement(Probe));
  unmount = () => root.unmount();
  await until(() => expect(seen?.isConnected).toBe(true));
});
afterEach(async () => {
  unmount();
  await bridge.stop();
});

test("a session is made, a message shown at once, the answer streamed", async () => {
  bridge.onCommand = ({ type, clientMessageId }) => {
    if (type === "new_session")
      bridge.say({ type: "session_created", sessionId: "s", session: snapshot("s"), clientMessageId });
  };
  await seen.newSession("/work");
  await until(() => expect(seen.conversation?.sessionId).toBe("s"));
  seen.sendMessage("hello");
  await until(() => expect(seen.messages).toMatchObject([{ role: "user", content: "hello", state: "sending" }]));
  const sent = bridge.of("send_message")[0];
  const mine = {
    type: "user_message",
    sessionId: "s",
    seq: 1,
    timestamp: "",
    content: { type: "text", text: "hello" },
    clientMessageId: sent?.clientMessageId,
  };
  bridge.say(mine, chunk("s", 2, "good "), chunk("s", 3, "day"));
  await until(() => expect(seen.currentStreamingMessage).toBe("good day"));
  expect(seen.messages).toMatchObject([{ role: "user", state: "sent" }]);
  bridge.say({ type: "turn_complete", sessionId: "s", seq: 4, timestamp: "", stopReason: "end_turn" });
  await until(() =>
    expect(seen.messages).toMatchObject([
      { role: "user", state: "sent" },
      { role: "assistant", content: "good day" },
    ]),
  );
  expect(seen.currentStreamingMessage).toBe("");
});

test("questions and calls are pending until they are not", async () => {
  bridge.onCommand = ({ type }) => {
    if (type === "load_session")
      bridge.say({ type: "session_loaded", sessionId: "s", session: snapshot("s", { lastSeq: 2 }), afterSeq: 0 });
  };
  seen.loadSession("s");
  await until(() => expect(seen.conversation).not.toBeNull());
  const at = { sessionId: "s", timestamp: "" };
  bridge.say(
    {
      ...at,
      seq: 1,
      type: "tool_call_started",
      toolCallId: "t",
      title: "T",
      kind: "read",
      toolName: "r",
      arguments: {},
    },
    { ...at, seq: 2, type: "permission_request", requestId: "q", toolCall: { toolCallId: "t" }, options: [] },
  );
  await until(() => expect([seen.pendingToolCalls.length, seen.pendingPermissions.length]).toEqual([1, 1]));
  seen.respondToPermission("q", { outcome: "cancelled" });
  await bridge.until(() => bridge.of("permission_response").length === 1);
  bridge.say({ ...at, seq: 3, type: "turn_complete", stopReason: "cancelled" });
  await until(() => expect([seen.pendingToolCalls.length, seen.pendingPermissions.length]).toEqual([0, 0]));
});

test("a message to a session that is named opens it, and its turn is told as text and calls", async () => {
  bridge.onCommand = ({ type }) => {
    if (type === "load_session")
      bridge.say(
        { type: "session_loaded", sessionId: "n", session: snapshot("n"), afterSeq: 0 },
        { type: "caught_up", sessionId: "n", lastSeq: 0 },
      );
  };
  seen.sendMessage("go", "n");
  await until(() => expect(seen.messages).toMatchObject([{ role: "user", content: "go" }]));
  await bridge.until(() => bridge.of("send_message").length === 1);
  const sent = bridge.of("send_message")[0];
  expect(sent).toMatchObject({ sessionId: "n", content: "go" });
  const at = { sessionId: "n", timestamp: "" };
  bridge.say(
    {
      ...at,
      seq: 1,
      type: "user_message",
      content: { type: "text", text: "go" },
      clientMessageId: sent?.clientMessageId,
    },
    chunk("n", 2, "I look. "),
    {
      ...at,
      seq: 3,
      type: "tool_call_started",
      toolCallId: "t",
      title: "Read a",
      kind: "read",
      toolName: "read_file",
      arguments: { path: "a" },
    },
  );
  await until(() =>
    expect(seen.pendingToolCalls).toEqual([
      { id: "t", name: "read_file", arguments: { path: "a" }, status: "pending" },
    ]),
  );
  bridge.say(
    { ...at, seq: 4, type: "tool_call_completed", toolCallId: "t", status: "completed", result: { lines: 3 } },
    chunk("n", 5, "Done."),
  );
  await until(() => expect(seen.currentStreamingMessage).toBe("I look. Done."));
  const call = { id: "t", name: "read_file", arguments: { path: "a" }, status: "completed", result: { lines: 3 } };
  expect(seen.pendingToolCalls).toEqual([call]);
  seen.cancelTurn("n");
  await bridge.until(() => bridge.of("cancel_turn").length === 1);
  bridge.say({ ...at, seq: 6, type: "turn_complete", stopReason: "cancelled" });
  await until(() => expect(seen.pendingToolCalls).toEqual([]));
  expect(seen.messages).toMatchObject([
    { role: "user" },
    { role: "assistant", content: "I look. Done.", toolCalls: [call] },
  ]);
});
