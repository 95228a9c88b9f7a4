/** Which key answers with which option. */

import type { PermissionOption } from "../../bridge/events";

const LETTERS: Record<string, string> = { allow_once: "y", allow_always: "a", reject_once: "n", reject_always: "n" };

export interface Choice {
  readonly option: PermissionOption;
  /** The key shown on the button; its place's digit works as well. */
  readonly key: string;
  readonly digit: string | null;
  readonly tone: "allow" | "always" | "reject" | "plain";
}

const TONES: Record<string, Choice["tone"]> = {
  allow_once: "allow", allow_always: "always", reject_once: "reject", reject_always: "reject",
};

/** The options in their order. The first of a kind has its letter, the others their digit. */
export function choices(options: readonly PermissionOption[]): Choice[] {
  const taken = new Set<string>();
  // "n" must say no once where that can be said, whatever stands first.
  const onceFirst = options.some((option) => option.kind === "reject_once");
  return options.map((option, index) => {
    const letter = option.kind === "reject_always" && onceFirst ? undefined : LETTERS[option.kind];
    const digit = index < 9 ? String(index + 1) : null;
    const free = letter !== undefined && !taken.has(letter);
    if (free) taken.add(letter);
    return { option, key: free ? letter : (digit ?? ""), digit, tone: TONES[option.kind] ?? "plain" };
  });
}

export function chosen(all: readonly Choice[], key: string): Choice | undefined {
  const pressed = key.toLowerCase();
  if (pressed === "") return undefined;
  return all.find((choice) => choice.key === pressed) ?? all.find((choice) => choice.digit === pressed);
}

/** Is somebody writing there? Then a letter is a letter. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  if (target instanceof HTMLInputElement) return !["button", "checkbox", "radio", "range", "submit", "reset", "file"].includes(target.type);
  return target.closest('[role="textbox"],[role="combobox"],[role="listbox"],[role="menu"],[role="dialog"][aria-modal="true"]') !== null;
}
