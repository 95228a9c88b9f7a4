/** One line of the shape of a link definition: `[label]: https://address "title"`. */

export interface Link {
  readonly href: string;
  readonly title: string | undefined;
}

export interface LinkLine extends Link {
  readonly label: string;
  readonly raw: string;
}

const LINE =
  /^ {0,3}\[([^[\]\n\\]{1,200})\]:[ \t]+(?:<((?:https?:\/\/|mailto:)[^<>\s]+)>|((?:https?:\/\/|mailto:)[^\s<]+))(?:[ \t]+(?:"([^"\n]*)"|'([^'\n]*)'|\(([^()\n]*)\)))?[ \t]*(?:\n|$)/i;
const HEAD = /^[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)?\[([^[\]\n\\]{1,200})\]:/;

/** The line that `source` begins with, if it has the shape of a definition whose address can be opened. */
export function readLinkLine(source: string): LinkLine | null {
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

/** The label before the colon that `line` begins with, as `info` of `> [INFO]: ready`; null for other lines. */
export function headOf(line: string): string | null {
  const label = HEAD.exec(line)?.[1];
  return label === undefined ? null : normalized(label);
}

/** As marked looks labels up. */
function normalized(label: string): string {
  return label.trim().replace(/\s+/g, " ").toLowerCase();
}
