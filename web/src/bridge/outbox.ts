/**
 * What the user asked for and the gateway has not confirmed. Each entry is stored by its `clientMessageId`, so it
 * survives a reload and a closed tab; whichever tab is connected sends it, and the gateway does a repeated one once.
 */

import type { BridgeCommand, StopError } from "./events";

export type Command = BridgeCommand & { clientMessageId: string };

export interface Entry {
  readonly command: Command;
  readonly at: number;
  /** `accepted`: the gateway has it, its event has not come yet; it is shown, but not sent again. */
  readonly state: "waiting" | "sent" | "accepted" | "failed";
  readonly error: StopError | null;
}

/** `localStorage` has this shape. */
export interface Keeper {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/**
 * Sent again after a lost connection, because doing it late is what the user wants. Anything else (a listing, a
 * cancel) means the moment in which it was asked; "send all" repeated later would send what a Stop held meanwhile.
 */
const LASTING: ReadonlySet<string> = new Set([
  "send_message",
  "edit_queued",
  "drop_queued",
  "permission_response",
  "elicitation_response",
  "change_mode",
  "set_config_option",
  "rename_session",
  "close_session",
  "delete_session",
]);

/** An older message is kept, but only the user may send it: after a day it may mean something else. */
const STALE = 24 * 3600 * 1000;
const STALE_ERROR: StopError = { code: "stale", message: "This was never sent. Send it now, or drop it." };

export function isLasting(command: BridgeCommand): boolean {
  return LASTING.has(command.type);
}

export class Outbox {
  private entries: readonly Entry[] = [];
  private readonly unkept = new Set<string>();

  constructor(
    private readonly keeper: Keeper | null,
    private readonly prefix: string,
    private readonly changed: () => void,
  ) {
    this.restore();
  }

  list(): readonly Entry[] {
    return this.entries;
  }

  get(id: string): Entry | undefined {
    return this.entries.find((entry) => entry.command.clientMessageId === id);
  }

  add(command: Command): void {
    const entry: Entry = { command, at: Date.now(), state: "waiting", error: null };
    this.entries = [...this.entries, entry];
    this.keep(entry);
    this.changed();
  }

  mark(id: string, state: Entry["state"], error: StopError | null = null): void {
    const entry = this.get(id);
    if (entry === undefined) return;
    const marked: Entry = { ...entry, state, error };
    this.entries = this.entries.map((other) => (other === entry ? marked : other));
    if (state === "accepted") this.keeper?.removeItem(this.prefix + id);
    else if (state === "failed") this.keep(marked);
    this.changed();
  }

  remove(id: string): void {
    this.keeper?.removeItem(this.prefix + id);
    const left = this.entries.filter((entry) => entry.command.clientMessageId !== id);
    if (left.length === this.entries.length) return;
    this.entries = left;
    this.changed();
  }

  /** Every command that has to go out on a new connection, oldest first. */
  due(): Command[] {
    return this.entries
      .filter((entry) => entry.state === "waiting" || entry.state === "sent")
      .map((entry) => entry.command);
  }

  /** The connection is gone: what was on its way may or may not have arrived. */
  recall(): void {
    if (!this.entries.some((entry) => entry.state === "sent")) return;
    this.entries = this.entries.map((entry) => (entry.state === "sent" ? { ...entry, state: "waiting" } : entry));
    this.changed();
  }

  /** Leaving the page would lose something. */
  get fragile(): boolean {
    return this.due().some((command) => this.unkept.has(command.clientMessageId));
  }

  private keep(entry: Entry): void {
    const id = entry.command.clientMessageId;
    try {
      if (this.keeper === null) this.unkept.add(id);
      else this.keeper.setItem(this.prefix + id, JSON.stringify(entry));
    } catch {
      this.unkept.add(id); // the storage is full (images): it lives as long as the page
    }
  }

  private restore(): void {
    const keeper = this.keeper;
    if (keeper === null) return;
    const keys = Array.from({ length: keeper.length }, (_, index) => keeper.key(index));
    const found = keys.flatMap((key) => (key?.startsWith(this.prefix) ? [parsed(keeper.getItem(key))] : []));
    this.entries = found
      .filter((entry) => entry !== null)
      .map((entry) => revived(entry))
      .sort((one, other) => one.at - other.at);
  }
}

function parsed(text: string | null): Entry | null {
  try {
    const entry = JSON.parse(text ?? "null") as Entry | null;
    return typeof entry?.command?.clientMessageId === "string" ? entry : null;
  } catch {
    return null;
  }
}

function revived(entry: Entry): Entry {
  if (entry.state === "failed") return entry;
  if (Date.now() - entry.at > STALE) return { ...entry, state: "failed", error: STALE_ERROR };
  return { ...entry, state: "waiting" };
}
