/**
 * Terminal output to styled lines, for output that only colours and never moves the cursor.
 *
 * `needsEmulator` says which output that is not; emulator.ts draws those with xterm. Both make `StyledLine`s.
 */

export interface Style {
  /** 0 to 15 are the theme's; beyond that a CSS colour. */
  readonly fg: number | string | null;
  readonly bg: number | string | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly inverse: boolean;
  readonly strike: boolean;
}

export interface Span {
  readonly text: string;
  /** null: nothing but text. */
  readonly style: Style | null;
}

export type StyledLine = readonly Span[];

export const PLAIN: Style = {
  fg: null,
  bg: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
  strike: false,
};

// OSC and the other string sequences end with BEL or ST; an incomplete one is cut off with what follows it.
const STRINGS = /\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\|$)/g;
const CSI = /\u001b\[([0-9;:?>=!]*)[ -/]*([@-~])/g;
const OTHER = /\u001b(?:[()*+#%].|[ -/]*[0-~])|\u001b$|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f]/g;
const MOVES = /\u001b\[[0-9;?]*[A-HJKLMPSTXfsu@dG`]|\r(?!\n|\r|$)|\u0008|\u001b[78DEM]|\u001b\[\?(?:1049|47)h/;

/** Does it move the cursor or erase, so that only an emulator knows what stands where in the end? */
export function needsEmulator(output: string): boolean {
  // Erasing to the end of a line is harmless at a line's end: compilers and git do it after every line.
  return MOVES.test(output.replace(/\u001b\[0?K/g, ""));
}

export function parseAnsi(output: string): StyledLine[] {
  const text = output.replace(STRINGS, "").replace(/\r+\n/g, "\n");
  const lines: Span[][] = [[]];
  let style = PLAIN;
  const put = (piece: string) => {
    const clean = piece.replace(OTHER, "");
    clean.split("\n").forEach((part, index) => {
      if (index > 0) lines.push([]);
      if (part !== "") (lines.at(-1) as Span[]).push({ text: part, style: style === PLAIN ? null : style });
    });
  };
  let from = 0;
  for (const match of text.matchAll(CSI)) {
    put(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === "m") style = applySgr(style, match[1] ?? "");
  }
  put(text.slice(from).replace(/\u001b\[[0-9;:?]*$/, ""));
  if (lines.length > 1 && lines.at(-1)?.length === 0) lines.pop();
  return lines;
}

const SWITCHES: Record<number, Partial<Style>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { fg: null },
  49: { bg: null },
};

/** One SGR sequence over the style before it. */
export function applySgr(style: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
  let next: Style = style;
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index] ?? 0;
    if (code === 0) next = PLAIN;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(index + 1));
      if (colour !== null) next = { ...next, [code === 38 ? "fg" : "bg"]: colour };
      index += used;
    } else if (code >= 30 && code <= 37) next = { ...next, fg: code - 30 };
    else if (code >= 40 && code <= 47) next = { ...next, bg: code - 40 };
    else if (code >= 90 && code <= 97) next = { ...next, fg: code - 82 };
    else if (code >= 100 && code <= 107) next = { ...next, bg: code - 92 };
    else if (SWITCHES[code] !== undefined) next = { ...next, ...SWITCHES[code] };
  }
  return isPlain(next) ? PLAIN : next;
}

function isPlain(style: Style): boolean {
  return Object.entries(PLAIN).every(([name, value]) => style[name as keyof Style] === value);
}

function extended(rest: readonly number[]): [number | string | null, number] {
  if (rest[0] === 5) return [paletteColour(rest[1] ?? 0), 2];
  if (rest[0] === 2) return [rgb(rest[1] ?? 0, rest[2] ?? 0, rest[3] ?? 0), 4];
  return [null, rest.length];
}

/** A colour of the 256: the theme's own below 16, then the cube and the greys. */
export function paletteColour(index: number): number | string | null {
  if (index < 0 || index > 255 || !Number.isInteger(index)) return null;
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return rgb(grey, grey, grey);
  }
  const level = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const cube = index - 16;
  return rgb(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

export function rgb(red: number, green: number, blue: number): string {
  const byte = (value: number) => Math.min(255, Math.max(0, Math.trunc(value) || 0));
  return `rgb(${byte(red)} ${byte(green)} ${byte(blue)})`;
}
