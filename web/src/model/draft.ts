/** A conversation while one batch of events is applied: copied once, at the first write, and frozen again at the end. */

import type { Conversation, Item, Terminal } from "./conversation";

type StrayAnswer = Conversation["answers"] extends ReadonlyMap<string, infer A> ? A : never;
type Fields = { -readonly [K in keyof Conversation]: Conversation[K] };

export class Draft {
  readonly fields: Fields;
  private items: Item[] | null = null;
  private tools: Map<string, number> | null = null;
  private questions: Map<string, number> | null = null;
  private terminals: Map<string, Terminal> | null = null;

  constructor(private readonly before: Conversation) {
    this.fields = { ...before };
  }

  get length(): number {
    return (this.items ?? this.before.items).length;
  }

  at(index: number): Item | undefined {
    return (this.items ?? this.before.items)[index];
  }

  get last(): Item | undefined {
    return this.at(this.length - 1);
  }

  push(item: Item): void {
    this.items ??= this.before.items.slice();
    this.items.push(item);
    if (item.kind === "tool") this.toolPlaces().set(item.toolCallId, this.items.length - 1);
    if (item.kind === "permission" || item.kind === "elicitation")
      this.questionPlaces().set(item.requestId, this.items.length - 1);
  }

  replace(index: number, item: Item): void {
    this.items ??= this.before.items.slice();
    this.items[index] = item;
  }

  tool(toolCallId: string): number | undefined {
    return (this.tools ?? this.before.places.tools).get(toolCallId);
  }

  question(requestId: string): number | undefined {
    return (this.questions ?? this.before.places.questions).get(requestId);
  }

  terminal(terminalId: string): Terminal | undefined {
    return (this.terminals ?? this.before.terminals).get(terminalId);
  }

  setTerminal(terminal: Terminal): void {
    this.terminals ??= new Map(this.before.terminals);
    this.terminals.set(terminal.terminalId, terminal);
  }

  /** Kept for the question, which is in an older page. */
  setAnswer(requestId: string, answer: StrayAnswer): void {
    this.fields.answers = new Map(this.fields.answers).set(requestId, answer);
  }

  finish(): Conversation {
    const places =
      this.tools === null && this.questions === null
        ? this.before.places
        : { tools: this.tools ?? this.before.places.tools, questions: this.questions ?? this.before.places.questions };
    return {
      ...this.fields,
      items: this.items ?? this.before.items,
      places,
      terminals: this.terminals ?? this.before.terminals,
    };
  }

  private toolPlaces(): Map<string, number> {
    this.tools ??= new Map(this.before.places.tools);
    return this.tools;
  }

  private questionPlaces(): Map<string, number> {
    this.questions ??= new Map(this.before.places.questions);
    return this.questions;
  }
}
