/** The end of long output: what the page draws of it. The rest can be had as a file. */

export interface Tail {
  readonly text: string;
  /** Nothing was left out. */
  readonly whole: boolean;
  readonly shownLines: number;
  /** Of everything, shown or not. */
  readonly lines: number;
}

export const TAIL_LINES = 1_500;
export const TAIL_CHARACTERS = 120_000;

export function tailOf(output: string, maxLines = TAIL_LINES, maxCharacters = TAIL_CHARACTERS): Tail {
  const end = output.endsWith("\n") ? output.length - 1 : output.length;
  const floor = Math.max(0, output.length - maxCharacters);
  let from = output.length;
  let shown = 0;
  for (let at = end; at > floor && shown < maxLines; shown++) {
    const newline = output.lastIndexOf("\n", at - 1);
    if (newline < floor) {
      // A line longer than all that we show: its end has to do.
      from = floor === 0 ? 0 : shown === 0 ? floor : from;
      shown += floor === 0 || shown === 0 ? 1 : 0;
      break;
    }
    from = newline + 1;
    at = newline;
  }
  return {
    text: output.slice(from),
    whole: from === 0,
    shownLines: shown,
    lines: from === 0 ? shown : countLines(output),
  };
}

export function countLines(text: string): number {
  let lines = text === "" || text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}
