/**
 * Output that moves the cursor (progress bars, full-screen programs), through xterm's emulator.
 *
 * The emulator is the one without a screen of its own: we draw its lines ourselves, so that they are text
 * that can be selected and read aloud, follow the page's theme, and need no style that the page's
 * Content-Security-Policy forbids.
 */

import { type IBufferCell, Terminal } from "@xterm/headless";
import { paletteColour, PLAIN, rgb, type Span, type Style, type StyledLine } from "./ansi";

const COLUMNS = 120;
const ROWS = 40;
const SCROLLBACK = 2_000;

/** The lines that stand on the screen and above it after `output`. */
export async function emulate(output: string): Promise<StyledLine[]> {
  const terminal = new Terminal({
    cols: COLUMNS,
    rows: ROWS,
    scrollback: SCROLLBACK,
    convertEol: true,
    allowProposedApi: true,
  });
  try {
    await new Promise<void>((resolve) => terminal.write(output, resolve));
    return linesOf(terminal);
  } finally {
    terminal.dispose();
  }
}

function linesOf(terminal: Terminal): StyledLine[] {
  const buffer = terminal.buffer.active;
  const cell = buffer.getNullCell();
  const lines: Span[][] = [];
  for (let row = 0; row < buffer.length; row++) {
    const line = buffer.getLine(row);
    if (line === undefined) break;
    const wrapped = line.isWrapped ? lines.at(-1) : undefined;
    const spans = wrapped ?? [];
    if (wrapped === undefined) lines.push(spans);
    const width = line.translateToString(true).length;
    for (let column = 0; column < Math.max(width, lastStyled(line, cell)); column++) {
      const found = line.getCell(column, cell);
      if (found !== undefined && found.getWidth() > 0) add(spans, found.getChars() || " ", styleOf(found));
    }
  }
  while (lines.at(-1)?.length === 0) lines.pop();
  return lines;
}

/** A background may reach beyond the text. */
function lastStyled(
  line: { length: number; getCell(x: number, cell: IBufferCell): IBufferCell | undefined },
  cell: IBufferCell,
): number {
  for (let column = line.length - 1; column >= 0; column--) {
    const found = line.getCell(column, cell);
    if (found !== undefined && (!found.isBgDefault() || found.isInverse())) return column + 1;
  }
  return 0;
}

function add(spans: Span[], text: string, style: Style): void {
  const last = spans.at(-1);
  const known = style === PLAIN ? null : style;
  if (last !== undefined && same(last.style, known))
    spans[spans.length - 1] = { text: last.text + text, style: last.style };
  else spans.push({ text, style: known });
}

function same(a: Style | null, b: Style | null): boolean {
  if (a === null || b === null) return a === b;
  return (Object.keys(PLAIN) as (keyof Style)[]).every((name) => a[name] === b[name]);
}

function styleOf(cell: IBufferCell): Style {
  if (cell.isAttributeDefault()) return PLAIN;
  const colour = (palette: boolean, direct: boolean, value: number) =>
    palette ? paletteColour(value) : direct ? rgb(value >> 16, (value >> 8) & 255, value & 255) : null;
  return {
    fg: colour(cell.isFgPalette(), cell.isFgRGB(), cell.getFgColor()),
    bg: colour(cell.isBgPalette(), cell.isBgRGB(), cell.getBgColor()),
    bold: cell.isBold() !== 0,
    dim: cell.isDim() !== 0,
    italic: cell.isItalic() !== 0,
    underline: cell.isUnderline() !== 0,
    inverse: cell.isInverse() !== 0,
    strike: cell.isStrikethrough() !== 0,
  };
}
