/** The highlighter's HTML as coloured pieces per line, so that colours and changed words can lie over each other. */

import type { Segment } from "./hunks";

export interface Token {
  readonly text: string;
  readonly className: string;
}

export interface Piece extends Token {
  readonly changed: boolean;
}

const ENTITIES: Record<string, string> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#x27;": "'",
  "&#39;": "'",
};
const MARKUP = /<span class="([^"]*)">|<\/span>|([^<]+)/g;

/** It reads what highlight.js writes: spans with a class, text, a handful of entities. */
export function tokensByLine(html: string): Token[][] {
  const lines: Token[][] = [[]];
  const open: string[] = [];
  for (const [match, opened, text] of html.matchAll(MARKUP)) {
    if (opened !== undefined) open.push(opened);
    else if (text === undefined) open.pop();
    else {
      const className = open.join(" ");
      match.split("\n").forEach((part, index) => {
        if (index > 0) lines.push([]);
        const plain = part.replace(/&(?:amp|lt|gt|quot|#x27|#39);/g, (entity) => ENTITIES[entity] ?? entity);
        if (plain !== "") (lines.at(-1) as Token[]).push({ text: plain, className });
      });
    }
  }
  return lines;
}

/** Cuts tokens where a changed word begins or ends. Both must be of the same line. */
export function overlay(tokens: readonly Token[], segments: readonly Segment[]): Piece[] {
  const pieces: Piece[] = [];
  let token = 0;
  let used = 0;
  for (const { text, changed } of segments) {
    let left = text.length;
    while (left > 0 && token < tokens.length) {
      const current = tokens[token] as Token;
      const length = Math.min(left, current.text.length - used);
      pieces.push({ text: current.text.slice(used, used + length), className: current.className, changed });
      left -= length;
      used += length;
      if (used === current.text.length) {
        token++;
        used = 0;
      }
    }
  }
  return pieces;
}
