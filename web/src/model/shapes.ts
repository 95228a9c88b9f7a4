/**
 * What a numbered event must look like to be applied (the types in bridge/events.ts, checked).
 *
 * The gateway normalises what agents send, but a page that trusted it would be emptied by one field that slipped through:
 * an event of another shape is shown as it is and changes nothing else.
 */

import type { JournalEvent } from "../bridge/events";

type Shape = (value: unknown) => boolean;
type Fields = Record<string, Shape>;

const anything: Shape = () => true;
const string: Shape = (value) => typeof value === "string";
const number: Shape = (value) => typeof value === "number";
const boolean: Shape = (value) => typeof value === "boolean";
/** Absent and null mean the same. */
const maybe =
  (shape: Shape): Shape =>
  (value) =>
    value === undefined || value === null || shape(value);
const list =
  (shape: Shape): Shape =>
  (value) =>
    Array.isArray(value) && value.every(shape);

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const object =
  (fields: Fields): Shape =>
  (value) =>
    isObject(value) && Object.entries(fields).every(([name, shape]) => shape(value[name]));

/** An object whose `type` says which fields it has; types that are not known have none that must be there. */
const tagged =
  (types: Record<string, Fields>): Shape =>
  (value) => {
    if (!isObject(value) || typeof value.type !== "string") return false;
    const fields = Object.hasOwn(types, value.type) ? types[value.type] : undefined;
    return fields === undefined || object(fields)(value);
  };

const BLOCK = tagged({
  text: { text: string },
  image: { data: string, mimeType: string, uri: maybe(string) },
  audio: { data: string, mimeType: string },
  resource_link: {
    uri: string,
    name: maybe(string),
    title: maybe(string),
    mimeType: maybe(string),
    size: maybe(number),
  },
  resource: {
    resource: object({ uri: maybe(string), mimeType: maybe(string), text: maybe(string), blob: maybe(string) }),
  },
});
const TOOL_CONTENT = tagged({
  content: { content: BLOCK },
  diff: { path: string, oldText: maybe(string), newText: string },
  terminal: { terminalId: string },
});
const TERMINAL: Fields = {
  terminalId: string,
  output: string,
  truncated: maybe(boolean),
  exitStatus: maybe(object({ exitCode: maybe(number), signal: maybe(string) })),
};
const TOOL: Fields = {
  toolCallId: string,
  title: maybe(string),
  kind: maybe(string),
  status: maybe(string),
  content: maybe(list(TOOL_CONTENT)),
  locations: maybe(list(object({ path: string, line: maybe(number) }))),
  terminal: maybe(object(TERMINAL)),
};
const CHOICE = object({ value: string, name: string, description: maybe(string) });
const OPTIONS = list(
  object({
    id: string,
    name: string,
    description: maybe(string),
    type: string,
    currentValue: maybe((value) => string(value) || boolean(value)),
    options: maybe(list((value) => CHOICE(value) || object({ name: string, options: list(CHOICE) })(value))),
  }),
);
const MODES = object({
  currentModeId: maybe(string),
  availableModes: list(object({ id: string, name: string, description: maybe(string) })),
});
const APPROVED = object({ by: string, at: string, client: maybe(string) });
const APPROVAL = object({
  rules: list(object({ rule: string, approvals: number, approvers: list(string) })),
  promptedBy: string,
  since: string,
  said: list(APPROVED),
});
const FAILURE = object({ code: anything, message: string, hint: maybe(string) });

const SHAPES: Record<JournalEvent["type"], Fields> = {
  user_message: { content: BLOCK, clientMessageId: maybe(string), author: maybe(string) },
  message_chunk: { content: string, block: maybe(BLOCK), messageId: maybe(string) },
  thought_chunk: { content: string, messageId: maybe(string) },
  tool_call_started: { ...TOOL, toolName: maybe(string) },
  tool_call_progress: TOOL,
  tool_call_completed: TOOL,
  permission_request: {
    requestId: string,
    toolCall: object(TOOL),
    options: list(object({ optionId: string, name: string, kind: maybe(string) })),
    facts: maybe(
      object({
        why: string,
        commands: list(string),
        paths: list(object({ path: string, access: string, outside: boolean })),
        hosts: list(string),
        opaque: maybe(string),
      }),
    ),
    remember: maybe(object({ pattern: list(string), scopes: list(string), until: list(string) })),
    approval: maybe(APPROVAL),
  },
  permission_approved: { requestId: string, by: string, at: string, client: maybe(string) },
  permission_resolved: {
    requestId: maybe(string),
    outcome: object({ outcome: string, optionId: maybe(string) }),
    by: maybe(string),
    client: maybe(string),
    identity: maybe(string),
    toolCallId: maybe(string),
    approvals: maybe(list(APPROVED)),
    remembered: maybe(object({ id: string, scope: string, until: maybe(string), words: string })),
  },
  elicitation_request: {
    requestId: string,
    mode: string,
    message: string,
    requestedSchema: maybe(isObject),
    url: maybe(string),
  },
  elicitation_resolved: { requestId: string, action: string, by: maybe(string), client: maybe(string) },
  terminal_output: TERMINAL,
  plan_created: { entries: list(object({ content: string, priority: maybe(string), status: maybe(string) })) },
  mode_changed: { modeId: string },
  model_changed: { modelId: string },
  config_options: { options: OPTIONS },
  commands_available: { commands: list(object({ name: string, description: maybe(string), input: maybe(isObject) })) },
  usage: { used: maybe(number), size: maybe(number), cost: maybe(object({ amount: number, currency: string })) },
  setting_chosen: {},
  session_info: { title: maybe(string), state: maybe(string), modes: maybe(MODES), configOptions: maybe(OPTIONS) },
  notice: { title: string, severity: string },
  events_lost: { firstSeq: number },
  queue_changed: {
    queue: list(
      object({ clientMessageId: string, content: list(BLOCK), held: maybe(string), stopped: maybe(boolean) }),
    ),
  },
  turn_complete: { stopReason: maybe(string), error: maybe(FAILURE) },
  agent_exited: { message: string, expected: maybe(boolean) },
  agent_revived: {},
  session_parked: {},
  conversation_rewound: { undone: list(list(number)), message: maybe(number), undo: maybe(boolean), by: string },
  unknown_update: {},
};

/** Whether an event of a known type has the fields that its type promises. */
export function isWellFormed(event: { readonly type: string }): boolean {
  return Object.hasOwn(SHAPES, event.type) && object(SHAPES[event.type as JournalEvent["type"]])(event);
}
