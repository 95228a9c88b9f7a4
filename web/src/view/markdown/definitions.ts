/**
 * Link definitions of a message: `[label]: https://address "title"`.
 *
 * CommonMark hides every line that has that shape, also `[INFO]: ready`, which is an answer's text and not a link.
 * Here a line is a definition only if its address can be opened and the message refers to its label. Every other
 * line stays visible.
 */

import { readFence } from "./blocks";

export interface Link {
  readonly href: string;
  readonly title: string | undefined;
}

export interface Definitions {
  /** Equal for equal definitions. */
  readonly key: string;
  readonly links: ReadonlyMap<string, Link>;
}

export const NO_DEFINITIONS: Definitions = { key: "", links: new Map() };

const LINE =
  /^ {0,3}\[([^[\]\n\\]{1,200})\]:[ \t]+(?:<((?:https?:\/\/|mailto:)[^<>\s]+)>|((?:https?:\/\/|mailto:)[^\s<]+))(?:[ \t]+(?:"([^"\n]*)"|'([^'\n]*)'|\(([^()\n]*)\)))?[ \t]*(?:\n|$)/i;
const REFERENCE = /\[([^[\]\n\\]{1,200})\](?!:)/g;

interface Line extends Link {
  readonly label: string;
  readonly raw: string;
}

/** The definition that `source` begins with, if it does. */
export function readDefinition(source: string): Line | null {
  const found = LINE.exec(source);
  if (found === null) return null;
  const [raw, label, angled, bare, ...titles] = found;
  return {
    raw,
    label: normalized(label ?? ""),
    href: angled ?? bare ?? "",
    title: titles.find((title) => title !== undefined),
  };
}

/** As marked looks labels up. */
function normalized(label: string): string {
  return label.trim().replace(/\s+/g, " ").toLowerCase();
}

/** The definitions in the blocks of one message; any of its blocks may refer to them. */
export function definitions(blocks: readonly string[]): Definitions {
  const links = new Map<string, Link>();
  for (const block of blocks) {
    if (!block.includes("]:") || readFence(block) !== null) continue;
    for (const line of block.split("\n")) {
      const found = line.includes("]:") ? readDefinition(line) : null;
      if (found !== null && !links.has(found.label)) links.set(found.label, { href: found.href, title: found.title });
    }
  }
  if (links.size === 0) return NO_DEFINITIONS;
  const referred = references(blocks);
  for (const label of [...links.keys()]) if (!referred.has(label)) links.delete(label);
  return links.size === 0 ? NO_DEFINITIONS : { key: JSON.stringify([...links]), links };
}

function references(blocks: readonly string[]): Set<string> {
  const labels = new Set<string>();
  for (const block of blocks) {
    if (readFence(block) !== null) continue;
    for (const [, label] of block.matchAll(REFERENCE)) labels.add(normalized(label ?? ""));
  }
  return labels;
}
