/** Conversations that nobody had: as many events as one likes, in the proportions of real ones. */

import type { JournalEvent } from "../src/bridge/events";

export const SESSION = "dgm_bench";
const BEGIN = Date.UTC(2026, 10, 16, 9, 0, 0);

/** Events get their number and time when they are put into a journal. */
export type Bare<E = JournalEvent> = E extends JournalEvent ? Omit<E, "sessionId" | "seq" | "timestamp"> : never;

export class Journal {
  seq = 0;
  private clock = BEGIN;

  add(events: readonly Bare[], step = 150): JournalEvent[] {
    return events.map((event) => {
      this.seq += 1;
      this.clock += step;
      return {
        ...event,
        sessionId: SESSION,
        seq: this.seq,
        timestamp: new Date(this.clock).toISOString(),
      } as JournalEvent;
    });
  }
}

const PROSE = [
  "The parser reads a line at a time and keeps what is left over for the next read.",
  "That is where the **first bug** sits: `readline()` drops the tail when the pipe closes early.",
  "See [the protocol](https://agentclientprotocol.com) for what a client may send at that point.",
  "- it must answer every request once\n- it may send updates in between\n- it must not reorder them",
  "| Case | Before | After |\n|---|---:|---:|\n| small | 12 ms | 4 ms |\n| large | 310 ms | 41 ms |",
  '```python\ndef frames(data: bytes) -> list[bytes]:\n    """Cut at line ends."""\n    *whole, rest = data.split(b"\\n")\n    return whole\n```',
  "> A gap in the numbers is a fault, not an accident.",
];

const OLD = Array.from({ length: 60 }, (_, line) => `    value_${line} = compute(${line})`).join("\n");
const NEW = OLD.replace("value_20 = compute(20)", "value_20 = compute(20, cache=True)").replace(
  "value_40",
  "renamed_40",
);

/** About 40 events: a question, thoughts, prose in chunks, a read, an edit, a command. */
export function turn(index: number): Bare[] {
  const read = `r${index}`;
  const edit = `e${index}`;
  const run = `x${index}`;
  const path = `/home/ada/project/src/module_${index % 7}.py`;
  return [
    {
      type: "user_message",
      content: { type: "text", text: `Please look at @src/module_${index % 7}.py and make step ${index} faster.` },
    },
    ...words("I should read the file first, then measure before I change anything.").map((content) => ({
      type: "thought_chunk" as const,
      content,
    })),
    {
      type: "tool_call_started",
      toolCallId: read,
      toolName: "Read",
      title: `Read ${path}`,
      kind: "read",
      arguments: { path },
      locations: [{ path, line: 1 + (index % 90) }],
    },
    {
      type: "tool_call_completed",
      toolCallId: read,
      status: "completed",
      result: null,
      content: [{ type: "content", content: { type: "text", text: OLD } }],
    },
    ...words(`${PROSE[index % PROSE.length]}\n\n${PROSE[(index + 3) % PROSE.length]}`).map((content) => ({
      type: "message_chunk" as const,
      content,
    })),
    {
      type: "tool_call_started",
      toolCallId: edit,
      toolName: "Edit",
      title: `Edit ${path}`,
      kind: "edit",
      arguments: { path },
      locations: [{ path }],
    },
    {
      type: "tool_call_completed",
      toolCallId: edit,
      status: "completed",
      result: null,
      content: [{ type: "diff", path, oldText: OLD, newText: NEW }],
    },
    {
      type: "tool_call_started",
      toolCallId: run,
      toolName: "Bash",
      title: "`pytest -q`",
      kind: "execute",
      arguments: { command: "pytest -q" },
      content: [{ type: "terminal", terminalId: run }],
    },
    {
      type: "terminal_output",
      terminalId: run,
      output: `\u001b[32m${".".repeat(40)}\u001b[0m\n\u001b[1m40 passed\u001b[0m in 0.${index % 10}s\n`,
      exitStatus: { exitCode: 0 },
    },
    { type: "tool_call_completed", toolCallId: run, status: index % 9 === 8 ? "failed" : "completed", result: null },
    { type: "turn_complete", stopReason: "end_turn" },
  ];
}

/** Text in pieces of a few words, as models send it. */
export function words(text: string): string[] {
  return text.match(/(?:\S+\s*){1,4}/g) ?? [];
}

export function conversation(journal: Journal, events: number): JournalEvent[] {
  const made: JournalEvent[] = [];
  for (let index = 0; made.length < events; index++) made.push(...journal.add(turn(index)));
  return made.slice(0, events);
}

/** Text that never ends, for streaming: Markdown of every sort in chunks. */
export function* endless(): Generator<string> {
  for (let index = 0; ; index++) yield* words(`${PROSE[index % PROSE.length]}\n\n`);
}
