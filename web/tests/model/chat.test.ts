import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { BridgeClient } from "../../src/bridge/client";
import { Chat } from "../../src/model/chat";
import { createPageStore } from "../../src/model/store";
import { type Heard, Memory, ScriptedBridge, snapshot } from "../bridge/gateway";

const QUICK = { first: 10, longest: 40, silence: 5000, answer: 5000, opening: 2000 };
const until = (holds: () => void) => vi.waitFor(holds, { timeout: 3000, interval: 5 });

let bridge: ScriptedBridge;
let client: BridgeClient;
let chat: Chat;
let keeper: Memory;
/** What the gateway's list holds. */
let kept: Parameters<typeof snapshot>[];

/** Answers as the gateway does: lists, and whatever else a test has a word for. */
function answers(more: (command: Heard) => object | undefined = () => undefined): void {
  bridge.onCommand = (command) => {
    const { clientMessageId } = command;
    const answer = more(command);
    if (answer !== undefined) bridge.say({ ...answer, clientMessageId });
    else if (command.type === "list_sessions") {
      bridge.say({
        type: "session_list",
        sessions: kept.map((one) => snapshot(...one)),
        nextCursor: "more",
        clientMessageId,
      });
    }
  };
}

const listed = () => [...(chat.store.getState().sessions?.keys() ?? [])];

beforeEach(async () => {
  vi.stubGlobal("requestAnimationFrame", (frame: () => void) => setTimeout(frame, 0));
  vi.stubGlobal("cancelAnimationFrame", clearTimeout);
  bridge = await ScriptedBridge.start();
  kept = [["a"], ["b", { state: "waiting_for_permission", questions: 1 }]];
  answers();
  keeper = new Memory();
  client = new BridgeClient(bridge.url, { timings: QUICK, keeper });
  chat = new Chat(client, createPageStore());
  client.start();
  await until(() => expect(listed()).toEqual(["a", "b"]));
});
afterEach(async () => {
  client.stop();
  await bridge.stop();
  vi.unstubAllGlobals();
});

describe("the list of sessions", () => {
  test("forgets what was deleted or answered while there was no connection", async () => {
    kept = [["a"]];
    bridge.cut();
    await until(() => expect(listed()).toEqual(["a"]));
  });

  test("keeps what was told before its first page came", async () => {
    answers((command) => {
      if (command.type === "list_sessions") bridge.say({ type: "session_changed", session: snapshot("new") });
      return undefined;
    });
    kept = [["a"]];
    bridge.cut();
    await until(() => expect(listed()).toEqual(["a", "new"]));
  });

  test("goes on where it was after a search", async () => {
    answers((command) =>
      command.type === "list_sessions" && command.search !== undefined
        ? { type: "session_list", sessions: [snapshot("found")] }
        : undefined,
    );
    chat.search("some");
    await until(() => expect(chat.store.getState().found.map((one) => one.sessionId)).toEqual(["found"]));
    expect(chat.store.getState().nextCursor).toBe("more");
    expect(listed()).toEqual(["a", "b"]);
  });
});

describe("a deleted session", () => {
  test("is deleted when the page is left before the time to undo is over", async () => {
    chat.remove("a");
    expect(bridge.of("delete_session")).toEqual([]);
    chat.leavePage();
    await bridge.until(() => bridge.of("delete_session").length === 1);
    expect(keeper.length).toBe(1); // and again by the next page, should this one have been too quick
    expect(chat.store.getState().toasts).toEqual([]);
  });

  test("is not deleted when that was undone", async () => {
    chat.remove("a");
    chat.store.getState().toasts[0]?.action?.run();
    chat.leavePage();
    expect(chat.store.getState().leaving.size).toBe(0);
    expect(keeper.length).toBe(0);
  });

  test("is back when the gateway refused", async () => {
    answers((command) =>
      command.type === "delete_session" ? { type: "error", code: "role", message: "No.", sessionId: "a" } : undefined,
    );
    chat.remove("a");
    expect(chat.store.getState().leaving.has("a")).toBe(true);
    chat.leavePage();
    await until(() => expect(chat.store.getState().leaving.has("a")).toBe(false));
    await until(() => expect(chat.store.getState().toasts.map((toast) => toast.text)).toEqual(["No."]));
  });
});

test("a session on the screen that cannot be resumed says so, and is tried again", async () => {
  const loaded = { type: "session_loaded", sessionId: "a", session: snapshot("a"), afterSeq: 0 };
  answers((command) => (command.type === "load_session" ? loaded : undefined));
  chat.show("a");
  await until(() => expect(chat.store.getState().conversations.has("a")).toBe(true));
  answers((command) =>
    command.type === "resume"
      ? { type: "error", code: "store_full", message: "The disk is full.", sessionId: "a" }
      : undefined,
  );
  bridge.cut();
  await until(() => expect(chat.store.getState().trouble.get("a")).toMatchObject({ code: "store_full" }));
  expect(chat.store.getState().toasts).toEqual([]);
  answers((command) => (command.type === "load_session" ? loaded : undefined));
  chat.reopen("a");
  await until(() => expect(chat.store.getState().trouble.has("a")).toBe(false));
});
