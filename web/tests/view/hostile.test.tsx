// @vitest-environment jsdom
import fc from "fast-check";
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Incoming } from "../../src/bridge/connection";
import { type Actions, ActionsContext } from "../../src/model/actions";
import { openQuestions } from "../../src/model/chat";
import { applyEvents, emptyConversation } from "../../src/model/reducer";
import { Boundary, ElicitationCard, PermissionCard, Timeline } from "../../src/view";
import { PlanPanel } from "../../src/view/PlanPanel";
import { ItemView } from "../../src/view/timeline/ItemView";

/** Every event that an agent's words can become, with the fields that come from the agent. */
const FIELDS: Record<string, readonly string[]> = {
  user_message: ["content", "clientMessageId"],
  message_chunk: ["content", "block", "messageId"],
  thought_chunk: ["content", "messageId"],
  tool_call_started: ["toolCallId", "toolName", "title", "kind", "arguments", "content", "locations", "status"],
  tool_call_progress: [
    "toolCallId",
    "title",
    "kind",
    "status",
    "content",
    "locations",
    "rawInput",
    "rawOutput",
    "terminal",
  ],
  tool_call_completed: ["toolCallId", "status", "result", "content", "locations"],
  permission_request: ["requestId", "toolCall", "options"],
  permission_resolved: ["requestId", "outcome", "by"],
  elicitation_request: ["requestId", "mode", "message", "requestedSchema", "url"],
  elicitation_resolved: ["requestId", "action", "by"],
  terminal_output: ["terminalId", "output", "exitStatus"],
  plan_created: ["entries"],
  mode_changed: ["modeId"],
  model_changed: ["modelId"],
  config_options: ["options"],
  commands_available: ["commands"],
  usage: ["used", "size", "cost"],
  session_info: ["title", "state", "modes", "configOptions"],
  notice: ["title", "severity"],
  queue_changed: ["queue"],
  turn_complete: ["stopReason", "error"],
  agent_exited: ["message", "expected"],
  unknown_update: ["raw"],
  something_new: ["raw"],
};

const ODD = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    7,
    true,
    "",
    "text",
    "constructor",
    "__proto__",
    [],
    {},
    [null],
    [[]],
    [7],
    { type: 7 },
    [{ type: "text" }],
    [{ type: "terminal" }],
    [{ type: "diff" }],
    { type: "text", text: null },
    { type: "image" },
    { type: "resource" },
    { amount: "x", currency: {} },
    { optionId: {} },
    { toolCallId: null },
  ),
  fc.jsonValue({ maxDepth: 3 }),
);
const EVENT = fc
  .constantFrom(...Object.keys(FIELDS))
  .chain((type) =>
    fc
      .record(Object.fromEntries((FIELDS[type] ?? []).map((name) => [name, fc.option(ODD, { nil: undefined })])))
      .map((fields) => ({ ...fields, type })),
  );

const ACTIONS = new Proxy({}, { get: () => () => undefined }) as Actions;

let root: Root;
let host: HTMLElement;

beforeEach(() => {
  Object.assign(globalThis, {
    IS_REACT_ACT_ENVIRONMENT: true,
    ResizeObserver: class {
      observe() {}
      unobserve() {}
      disconnect() {}
    },
  });
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  host = document.createElement("div");
  document.body.append(host);
});

afterEach(() => host.remove());

function numbered(events: readonly object[]): Incoming[] {
  return events.map(
    (event, index) => ({ ...event, sessionId: "s", seq: index + 1, timestamp: "" }) as unknown as Incoming,
  );
}

async function draw(events: readonly object[]): Promise<string> {
  const live = applyEvents(emptyConversation("s"), [{ type: "caught_up", sessionId: "s" } as unknown as Incoming]);
  const after = { type: "message_chunk", content: "still here", messageId: "after" };
  const conversation = applyEvents(live, numbered([...events, after]));
  root = createRoot(host);
  await act(async () =>
    root.render(
      <ActionsContext value={ACTIONS}>
        <Boundary what="The page">
          <Timeline
            sessionId="s"
            items={conversation.items}
            terminals={conversation.terminals}
            working={false}
            turnStartedAt={0}
            caughtUp
            hasOlder={false}
            loadingOlder={false}
            cwd="/w"
          />
          {conversation.items.map((item) => (
            <Boundary key={item.key} what="This item" of={item}>
              <ItemView item={item} terminals={conversation.terminals} cwd="/w" />
            </Boundary>
          ))}
          {openQuestions(conversation).map((item) => (
            <Boundary key={item.key} what="This question" of={item}>
              {item.kind === "permission" ? <PermissionCard item={item} /> : <ElicitationCard item={item} />}
            </Boundary>
          ))}
          <Boundary what="The plan" of={conversation.plan}>
            <PlanPanel entries={conversation.plan} />
          </Boundary>
        </Boundary>
      </ActionsContext>,
    ),
  );
  const text = host.textContent ?? "";
  await act(async () => root.unmount());
  return text;
}

it("no event of a hostile agent empties the page", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(EVENT, { minLength: 1, maxLength: 6 }), async (events) => {
      const text = await draw(events);
      expect(text).not.toContain("The page could not be shown");
      expect(text).toContain("still here");
    }),
    { numRuns: Number(process.env.HOSTILE_RUNS ?? 60) },
  );
}, 120_000);

it("an object that cannot become a text costs the page nothing", async () => {
  const odd = { toString: 7, valueOf: null };
  const requestedSchema = { properties: { a: { enum: [odd], default: odd }, b: { default: odd, minItems: odd } } };
  const text = await draw([
    { type: "tool_call_started", toolCallId: "t", title: "A call", arguments: odd },
    { type: "tool_call_completed", toolCallId: "t", status: "completed", result: odd, content: [{ type: "result" }] },
    { type: "elicitation_request", requestId: "e", mode: "form", message: "Fill it in", requestedSchema },
  ]);
  expect(text).not.toContain("could not be shown");
  expect(text).toContain("A call");
});

it.each(["constructor", "toString", "__proto__", "hasOwnProperty"])(
  "the name %s is a name like any other",
  async (name) => {
    const requestedSchema = { properties: { [name]: { type: name, format: name, title: "A field" } } };
    const text = await draw([
      { type: "tool_call_started", toolCallId: name, title: name, kind: name, status: name, toolName: name },
      { type: "permission_resolved", requestId: "p", outcome: { outcome: name, optionId: name }, by: name },
      { type: "plan_created", entries: [{ content: name, status: name, priority: name }] },
      { type: "message_chunk", content: `\`\`\`${name}\ncode\n\`\`\``, messageId: name },
      { type: "message_chunk", content: "", block: { type: name } },
      { type: "turn_complete", stopReason: name },
      {
        type: "permission_request",
        requestId: "q",
        toolCall: { toolCallId: name },
        options: [
          { optionId: name, name: "This one", kind: name },
          { optionId: "y", name: "Allow", kind: "allow_once" },
        ],
      },
      { type: "elicitation_request", requestId: "e", mode: "form", message: "Fill it in", requestedSchema },
    ]);
    expect(text).not.toContain("could not be shown");
    expect(text).toContain("This one");
    expect(text).toContain(`The turn ended: ${name.replaceAll("_", " ")}.`);
  },
);

it("what cannot be drawn says so, with the ways on, and is tried again when it changes", async () => {
  const Broken = ({ broken }: { broken: boolean }) => {
    if (broken) throw new Error("a number is no title");
    return <span>whole</span>;
  };
  root = createRoot(host);
  await act(async () =>
    root.render(
      <Boundary what="This item" of={1}>
        <Broken broken />
      </Boundary>,
    ),
  );
  expect(host.textContent).toContain("This item could not be shown: a number is no title");
  expect([...host.querySelectorAll("button")].map((button) => button.textContent)).toEqual(["Reload", "Copy report"]);
  await act(async () =>
    root.render(
      <Boundary what="This item" of={2}>
        <Broken broken={false} />
      </Boundary>,
    ),
  );
  expect(host.textContent).toBe("whole");
  await act(async () => root.unmount());
});
