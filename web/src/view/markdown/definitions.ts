/**
 * Link definitions of a message: `[label]: https://address "title"`.
 *
 * CommonMark hides every line that has that shape, also `[INFO]: ready`, which is an answer's text and not a link.
 * Here a line is a definition only if it stands where CommonMark allows one, its address can be opened, a link of the
 * message uses it, and no line says something else after the same label, as those of a log do. Every other line stays
 * visible.
 */

import { readFence } from "./blocks";
import { headOf, type Link, type LinkLine, readLinkLine } from "./linkLine";
import { usedLabels } from "./safety";

export interface Definitions {
  /** Equal for equal definitions. */
  readonly key: string;
  readonly links: ReadonlyMap<string, Link>;
}

export const NO_DEFINITIONS: Definitions = { key: "", links: new Map() };

/** The definitions in the blocks of one message; any of its blocks may refer to them. */
export function definitions(blocks: readonly string[]): Definitions {
  const text = blocks.filter((block) => block.includes("[") && readFence(block) === null);
  const links = candidates(text);
  if (links.size === 0) return NO_DEFINITIONS;
  const defined = made(links);
  const used = new Set(text.flatMap((block) => usedLabels(block, defined)));
  return made(new Map([...links].filter(([label]) => used.has(label))));
}

function made(links: ReadonlyMap<string, Link>): Definitions {
  return links.size === 0 ? NO_DEFINITIONS : { key: JSON.stringify([...links]), links };
}

function candidates(blocks: readonly string[]): Map<string, Link> {
  const links = new Map<string, Link>();
  const tags = new Set<string>();
  for (const block of blocks) {
    if (!block.includes("]:")) continue;
    let first = true; // a definition cannot follow text in one paragraph
    for (const line of block.split("\n")) {
      if (line.trim() === "") continue;
      const found: LinkLine | null = first ? readLinkLine(line) : null;
      first = found !== null;
      const label = headOf(line);
      if (label === null) continue;
      const before = links.get(label);
      if (found === null || (before !== undefined && before.href !== found.href)) tags.add(label);
      else if (before === undefined) links.set(label, { href: found.href, title: found.title });
    }
  }
  for (const tag of tags) links.delete(tag);
  return links;
}
