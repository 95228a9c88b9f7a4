import { describe, expect, test } from "vitest";
import type { JournalEvent } from "../../src/bridge/events";
import { type Conversation, type PermissionItem, shownItems, type ToolItem } from "../../src/model/conversation";
import { withOlder } from "../../src/model/history";
import { applyEvents, emptyConversation, withSnapshot, withSummary } from "../../src/model/reducer";
import { snapshot } from "../bridge/gateway";

type Loose = { type: string; [field: string]: unknown };

/** Numbers events and gives each a second of its own. */
function journal(...events: Loose[]): JournalEvent[] {
  return events.map((event, index) => ({
    sessionId: "s",
    seq: index + 1,
    timestamp: new Date(1_700_000_000_000 + index * 1000).toISOString(),
    ...event,
  })) as unknown as JournalEvent[];
}

const say = (content: string): Loose => ({ type: "message_chunk", content });
const ask = (text: string, clientMessageId?: string): Loose => ({
  type: "user_message",
  content: { type: "text", text },
  clientMessageId,
});
const empty = emptyConversation("s");
const live: Conversation = withSnapshot(empty, snapshot("s"), 0);
const kinds = (conversation: Conversation) => conversation.items.map((item) => item.kind);

describe("a turn whose prompt waits for its checkpoint", () => {
  const working = snapshot("s", { state: "working" });

  test("runs already, and ends if it is cancelled then", () => {
    const waiting = withSummary(live, working);
    expect([waiting.state, waiting.working]).toEqual(["working", true]);
    expect(withSummary(waiting, snapshot("s")).working).toBe(false);
  });

  test("is told by its events from the first one on", () => {
    const begun = applyEvents(live, journal(ask("hello")));
    expect(withSummary(begun, snapshot("s")).working).toBe(true);
  });

  test("is not believed where its state may be an old one", () => {
    expect(withSummary(live, { ...working, elsewhere: true }).working).toBe(false);
    expect(withSummary(empty, working).working).toBe(false);
  });
});

describe("a conversation", () => {
  test("tells what a person said from what the agent says that was said", () => {
    const told = { ...ask("rm -rf /"), author: "agent" };
    const made = applyEvents(live, journal(ask("hello"), told, told, ask("go on")));
    expect(
      made.items.map((item) => (item.kind === "user" ? [item.told ?? false, item.content.length] : item.kind)),
    ).toEqual([
      [false, 1],
      [true, 2],
      [false, 1],
    ]);
  });

  test("does not show what was undone, until it is brought back", () => {
    const said = journal(ask("one"), say("1"), ask("two"), say("2"));
    const undone = { ...said[0], type: "conversation_rewound", seq: 5, undone: [[3, 4]], message: 2, by: "local" };
    const made = applyEvents(live, [...said, undone as unknown as JournalEvent]);
    expect(shownItems(made).map((item) => item.kind)).toEqual(["user", "agent", "marker"]);
    expect(made.items).toHaveLength(5);
    const back = { ...undone, seq: 6, undone: [], undo: true };
    expect(shownItems(applyEvents(made, [back as unknown as JournalEvent]))).toHaveLength(6);
    const late = applyEvents(live, [undone as unknown as JournalEvent]);
    expect(shownItems(withOlder(late, said)).map((item) => item.kind)).toEqual(["user", "agent", "marker"]);
  });

  test("joins the chunks of one message and keeps what is no text apart", () => {
    const image = { type: "image", data: "", mimeType: "image/png" };
    const made = applyEvents(
      live,
      journal(say("a"), say("b"), { type: "message_chunk", content: "", block: image }, say("c")),
    );
    expect(made.items).toHaveLength(1);
    expect(made.items[0]).toMatchObject({
      kind: "agent",
      streaming: true,
      parts: [{ text: "ab" }, image, { text: "c" }],
    });
  });

  test("begins a new message where the agent's id changes", () => {
    const made = applyEvents(live, journal({ ...say("a"), messageId: "1" }, { ...say("b"), messageId: "2" }));
    expect(made.items).toHaveLength(2);
  });

  test("folds blocks of one user message into one", () => {
    const made = applyEvents(live, journal(ask("a", "m1"), ask("b", "m1"), ask("c", "m2")));
    expect(made.items).toHaveLength(2);
    expect(made.items[0]).toMatchObject({ kind: "user", content: [{ text: "a" }, { text: "b" }] });
  });

  test("shows what could not be stored in its place, each once, and goes on from the last number", () => {
    const events = journal(
      ask("go"),
      say("kept "),
      say("unkept "),
      { type: "notice", title: "not saved", severity: "error" },
      ask("more"),
      say("again"),
    );
    const unkept = events.map((event, index) =>
      index >= 2 && index < 5 ? ({ ...event, seq: undefined } as unknown as JournalEvent) : event,
    );
    const made = applyEvents(
      live,
      unkept.map((event, index) => (index === 5 ? { ...event, seq: 3 } : event)),
    );
    expect(kinds(made)).toEqual(["user", "agent", "notice", "user", "agent"]);
    expect(made.items[1]).toMatchObject({ parts: [{ text: "kept unkept " }] });
    expect(new Set(made.items.map((item) => item.key)).size).toBe(made.items.length);
    expect(made.lastSeq).toBe(3);
  });

  test("is the same however its events are batched", () => {
    const events = journal(
      ask("go"),
      { type: "thought_chunk", content: "hm" },
      say("a"),
      { type: "tool_call_started", toolCallId: "t", title: "T", kind: "read", toolName: "r", arguments: {} },
      { type: "tool_call_completed", toolCallId: "t", status: "completed", result: "ok" },
      say("b"),
      { type: "turn_complete", stopReason: "end_turn" },
    );
    const whole = applyEvents(live, events);
    const single = events.reduce((conversation, event) => applyEvents(conversation, [event]), live);
    expect(single).toEqual(whole);
    expect(kinds(whole)).toEqual(["user", "thought", "agent", "tool", "agent", "turn_end"]);
  });

  test("does not say again what a failed call says", () => {
    const failed: Loose[] = [
      { type: "tool_call_started", toolCallId: "t", title: "T", kind: "read", toolName: "r", arguments: {} },
      {
        type: "tool_call_completed",
        toolCallId: "t",
        status: "failed",
        result: "There is no file x.",
        content: [{ type: "result" }],
      },
    ];
    expect(applyEvents(live, journal(...failed, say("There is no file x."))).items[1]).toMatchObject({
      kind: "agent",
      echo: true,
    });
    expect(
      applyEvents(live, journal(...failed, say("There is no file x."), say(" Shall I make it?"))).items[1],
    ).toMatchObject({ echo: false });
    expect(applyEvents(live, journal(...failed, say("Another thing."))).items[1]).not.toHaveProperty("echo");
  });

  test("marks a call that ran before the rules saw it", () => {
    const read: Loose[] = [
      { type: "tool_call_started", toolCallId: "t", title: "T", kind: "read", toolName: "r", arguments: {} },
      { type: "tool_call_completed", toolCallId: "t", status: "completed", result: "x", unmediated: true },
    ];
    expect(applyEvents(live, journal(...read)).items).toMatchObject([{ kind: "tool", unmediated: true }]);
  });

  test("does not draw what a call says is told again", () => {
    const read: Loose[] = [
      { type: "tool_call_started", toolCallId: "t", title: "T", kind: "read", toolName: "r", arguments: {} },
      { type: "tool_call_completed", toolCallId: "t", status: "completed", result: "x", told: true },
    ];
    const made = applyEvents(live, journal(...read, say("```\n"), say("x\n"), say("```\n")));
    expect(made.items).toMatchObject([
      { kind: "tool", told: true },
      { kind: "agent", echo: true },
    ]);
  });

  test("says once that a call was stopped, and keeps what it printed", () => {
    const printed = { type: "content", content: { type: "text", text: "line 1" } };
    const run: Loose[] = [
      { type: "tool_call_started", toolCallId: "t", title: "T", kind: "execute", toolName: "run", arguments: {} },
      { type: "tool_call_progress", toolCallId: "t", content: [printed] },
      { type: "tool_call_completed", toolCallId: "t", status: "failed", result: "cancelled" },
    ];
    const stopped = applyEvents(live, journal(...run, { type: "turn_complete", stopReason: "cancelled" }));
    expect(stopped.items[0]).toMatchObject({ abandoned: true, output: undefined, content: [printed] });
    const ended = applyEvents(live, journal(...run, { type: "turn_complete", stopReason: "end_turn" }));
    expect(ended.items[0]).toMatchObject({ abandoned: false, output: "cancelled" });
  });

  test("knows a call that somebody refused", () => {
    const question = {
      type: "permission_request",
      requestId: "q",
      toolCall: { toolCallId: "t" },
      options: [{ optionId: "no", name: "No", kind: "reject_once" }],
    };
    const made = applyEvents(
      live,
      journal(
        { type: "tool_call_started", toolCallId: "t", title: "T", kind: "execute", toolName: "run", arguments: {} },
        question,
        { type: "permission_resolved", requestId: "q", outcome: { outcome: "selected", optionId: "no" }, by: "user" },
      ),
    );
    expect(made.items[0]).toMatchObject({ kind: "tool", asking: false, refused: true });
  });

  test("keeps the identity of items that did not change", () => {
    const before = applyEvents(live, journal(ask("go"), say("a")));
    const after = applyEvents(before, [{ ...say("b"), sessionId: "s", seq: 3, timestamp: "" } as never]);
    expect(after.items[0]).toBe(before.items[0]);
    expect(after.items[1]).not.toBe(before.items[1]);
    expect(after.places).toBe(before.places);
  });

  test("keeps an event that has no name", () => {
    const made = applyEvents(
      live,
      journal({ type: "aurora", colour: "green" }, { type: "unknown_update", raw: { a: 1 } }),
    );
    expect(made.items[0]).toMatchObject({ kind: "unknown", type: "aurora", raw: { colour: "green" } });
    expect(made.items[1]).toMatchObject({ kind: "unknown", raw: { a: 1 } });
    expect(made.lastSeq).toBe(2);
  });
});

describe("a tool call", () => {
  const start = {
    type: "tool_call_started",
    toolCallId: "t",
    title: "Read a",
    kind: "read",
    toolName: "read",
    arguments: { path: "a" },
    status: "in_progress",
  };

  test("takes from each update what it says and keeps the rest", () => {
    const made = applyEvents(
      live,
      journal(
        start,
        { type: "tool_call_progress", toolCallId: "t", title: "Read a.txt" },
        { type: "tool_call_completed", toolCallId: "t", status: "completed", result: "text" },
      ),
    );
    expect(made.items).toHaveLength(1);
    expect(made.items[0]).toMatchObject({
      title: "Read a.txt",
      toolKind: "read",
      toolName: "read",
      input: { path: "a" },
      output: "text",
      status: "completed",
    });
    expect((made.items[0] as ToolItem).endedAt - (made.items[0] as ToolItem).at).toBe(2000);
  });

  test("has its result where it stood in the content, and once", () => {
    const done = {
      type: "tool_call_completed",
      toolCallId: "t",
      status: "completed",
      result: "text",
      content: [{ type: "result" }],
    };
    const made = applyEvents(live, journal(start, done));
    expect(made.items[0]).toMatchObject({
      content: [{ type: "content", content: { type: "text", text: "text" } }],
      output: undefined,
    });
  });

  test("that the turn left behind is abandoned", () => {
    const made = applyEvents(live, journal(start, { type: "turn_complete", stopReason: "cancelled" }));
    expect(made.items[0]).toMatchObject({ status: "failed", abandoned: true });
  });
});

describe("a question", () => {
  const question = {
    type: "permission_request",
    requestId: "q",
    toolCall: { toolCallId: "t" },
    options: [{ optionId: "y", name: "Yes", kind: "allow_once" }],
  };
  const start = {
    type: "tool_call_started",
    toolCallId: "t",
    title: "rm",
    kind: "execute",
    toolName: "sh",
    arguments: { command: "rm" },
  };

  test("shows what is known of its call", () => {
    const made = applyEvents(live, journal(start, question));
    expect(made.items[1]).toMatchObject({
      kind: "permission",
      toolCall: { title: "rm", rawInput: { command: "rm" } },
      answer: null,
    });
    expect(made.items[0]).toMatchObject({ asking: true });
  });

  test("that was answered elsewhere is not mine", () => {
    const made = applyEvents(
      live,
      journal(start, question, {
        type: "permission_resolved",
        requestId: "q",
        outcome: { outcome: "selected", optionId: "y" },
        by: "zed",
      }),
    );
    expect(made.items[1]).toMatchObject({ answer: { optionId: "y", by: "zed" }, mine: false });
    expect(made.items[0]).toMatchObject({ asking: false });
  });

  test("that this page answered is mine", () => {
    const asked = applyEvents(live, journal(start, question));
    const sending = { ...asked, items: asked.items.with(1, { ...(asked.items[1] as PermissionItem), sending: "y" }) };
    const made = applyEvents(
      sending,
      journal(start, question, {
        type: "permission_resolved",
        requestId: "q",
        outcome: { outcome: "selected", optionId: "y" },
        by: "web",
      }).slice(2),
    );
    expect(made.items[1]).toMatchObject({ mine: true, sending: null });
  });

  test("is over when the turn is", () => {
    const made = applyEvents(live, journal(question, { type: "turn_complete", stopReason: "cancelled" }));
    expect(made.items[0]).toMatchObject({ answer: { outcome: "cancelled", by: "turn" } });
  });
});

describe("the state", () => {
  test("follows live turns", () => {
    const working = applyEvents({ ...live, caughtUp: true }, journal(ask("go")));
    expect(working.working).toBe(true);
    expect(
      applyEvents(working, journal(ask("go"), { type: "turn_complete", stopReason: "end_turn" }).slice(1)).working,
    ).toBe(false);
  });

  test("is the snapshot's while old events are replayed", () => {
    const before = withSnapshot(
      empty,
      snapshot("s", { state: "idle", lastSeq: 2, modes: { currentModeId: "code", availableModes: [] } }),
      0,
    );
    const made = applyEvents(before, journal(ask("go"), { type: "mode_changed", modeId: "ask" }));
    expect(made).toMatchObject({ working: false, modeId: "code", caughtUp: false });
  });

  test("is kept when a connection is resumed and begun anew when there was a hole", () => {
    const before = applyEvents(live, journal(say("a")));
    expect(withSnapshot(before, snapshot("s", { lastSeq: 1 }), 1).items).toBe(before.items);
    expect(withSnapshot(before, snapshot("s", { lastSeq: 900 }), 800)).toMatchObject({ items: [], firstSeq: 801 });
  });
});

describe("older events", () => {
  const events = journal(
    ask("go"),
    { type: "thought_chunk", content: "one " },
    { type: "thought_chunk", content: "two" },
    say("a"),
    say("b"),
    { type: "tool_call_started", toolCallId: "t", title: "T", kind: "edit", toolName: "e", arguments: { path: "x" } },
    { type: "permission_request", requestId: "q", toolCall: { toolCallId: "t" }, options: [] },
    { type: "terminal_output", terminalId: "1", output: "x" },
    { type: "permission_resolved", requestId: "q", outcome: { outcome: "selected", optionId: "y" }, by: "zed" },
    { type: "terminal_output", terminalId: "1", output: "y" },
    { type: "tool_call_completed", toolCallId: "t", status: "completed", result: "ok" },
    say("c"),
    { type: "turn_complete", stopReason: "end_turn" },
  );
  const whole = applyEvents({ ...live, caughtUp: true }, events);
  const words = (conversation: Conversation) =>
    conversation.items.map(({ key: _key, ...item }) => ({ ...item, streaming: false }));

  test.each(events.slice(1).map((event) => event.seq))("joined at %i make the same conversation", (border) => {
    const newer = applyEvents(
      { ...withSnapshot(empty, snapshot("s", { lastSeq: events.length }), border - 1), caughtUp: true },
      events.slice(border - 1),
    );
    const joined = withOlder(newer, events.slice(0, border - 1));
    expect(words(joined).map((item) => ("duration" in item ? { ...item, duration: 0 } : item))).toMatchObject(
      words(whole).map((item) =>
        "duration" in item
          ? { ...item, duration: 0 }
          : "endedAt" in item && item.kind === "thought"
            ? { ...item, endedAt: expect.any(Number) }
            : item,
      ),
    );
    expect(joined.terminals.get("1")?.output).toBe("xy");
    expect(joined.firstSeq).toBe(1);
  });

  test("leave the keys of what is shown alone", () => {
    const newer = applyEvents(withSnapshot(empty, snapshot("s", { lastSeq: 13 }), 4), events.slice(4));
    const joined = withOlder(newer, events.slice(0, 4));
    const keys = new Set(joined.items.map((item) => item.key));
    for (const item of newer.items) expect(keys).toContain(item.key);
  });
});

test("twenty thousand events are applied well within a frame each thousand", () => {
  const many = journal(...Array.from({ length: 20_000 }, (_, index) => (index % 50 === 0 ? ask("go") : say("word "))));
  let made = live;
  const started = performance.now();
  for (let index = 0; index < many.length; index += 1000) made = applyEvents(made, many.slice(index, index + 1000));
  expect(made.lastSeq).toBe(20_000);
  expect(performance.now() - started).toBeLessThan(2000);
});
