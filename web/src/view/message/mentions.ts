/** `@path` in what a person wrote. */

export interface Part {
  readonly text: string;
  readonly mention: boolean;
}

const MENTION = /(^|[\s("'])(@(?:"[^"\n]+"|[\w~./\\-][\w~./\\:+-]*))/g;

export function mentions(text: string): Part[] {
  const parts: Part[] = [];
  let from = 0;
  for (const match of text.matchAll(MENTION)) {
    const start = match.index + (match[1] ?? "").length;
    const name = (match[2] ?? "").replace(/[.,:;]+$/, "");
    if (name.length < 2) continue;
    if (start > from) parts.push({ text: text.slice(from, start), mention: false });
    parts.push({ text: name, mention: true });
    from = start + name.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), mention: false });
  return parts;
}
