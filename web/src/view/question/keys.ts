/** Which key answers with which option: yes once and no once. What holds for longer takes a click. */

import type { PermissionOption } from "../../bridge/events";
import { own } from "../../model/untrusted";

const LETTERS: Record<string, string> = { allow_once: "y", reject_once: "n" };

export interface Choice {
  readonly option: PermissionOption;
  /** The key shown on the button; empty when none answers with it. */
  readonly key: string;
  readonly tone: "allow" | "always" | "reject" | "plain";
}

const TONES: Record<string, Choice["tone"]> = {
  allow_once: "allow",
  allow_always: "always",
  reject_once: "reject",
  reject_always: "reject",
};

/** The options in their order. The first of a kind has its letter. */
export function choices(options: readonly PermissionOption[]): Choice[] {
  const taken = new Set<string>();
  return options.map((option) => {
    const letter = own(LETTERS, option.kind);
    const free = letter !== undefined && !taken.has(letter);
    if (free) taken.add(letter);
    return { option, key: free ? letter : "", tone: own(TONES, option.kind) ?? "plain" };
  });
}

export function chosen(all: readonly Choice[], key: string): Choice | undefined {
  const pressed = key.toLowerCase();
  return pressed === "" ? undefined : all.find((choice) => choice.key === pressed);
}
