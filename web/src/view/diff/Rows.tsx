import { Fragment, memo, useMemo, useState } from "react";
import { plural } from "../words";
import { changedWords, type Line, pairs, partners, type Segment } from "./hunks";
import { overlay, type Token } from "./tokens";
import styles from "./Diff.module.css";

/** Per line of each text; null while there are no colours. */
export interface Colours {
  readonly old: readonly (readonly Token[])[] | null;
  readonly new: readonly (readonly Token[])[] | null;
}

interface Props {
  lines: readonly Line[];
  start: number;
  end: number;
  split: boolean;
  colours: Colours;
  whole?: boolean;
}

/** Rows drawn at once: a new file of 20,000 lines must not hold the page up. */
const AT_ONCE = 250;
const MORE = 1_000;

export const Rows = memo(function Rows({ lines, start, end, split, colours, whole = false }: Props) {
  const [limit, setLimit] = useState(whole ? MORE * 2 : AT_ONCE);
  const shown = Math.min(end, start + limit);
  const part = useMemo(() => lines.slice(start, shown), [lines, start, shown]);
  return (
    <tbody>
      {split ? <Split part={part} colours={colours} /> : <Inline part={part} colours={colours} />}
      {shown < end ? (
        <tr className={styles.gap}>
          <td colSpan={split ? 4 : 3}>
            <div className={styles.gapLine}>
              <button type="button" onClick={() => setLimit(limit + MORE)}>
                Show {plural(Math.min(MORE, end - shown), "more line")}
              </button>
              <span>{plural(end - shown, "line")} left</span>
            </div>
          </td>
        </tr>
      ) : null}
    </tbody>
  );
});

const SIGNS = { same: " ", removed: "−", added: "+" };

function Inline({ part, colours }: { part: readonly Line[]; colours: Colours }) {
  const words = useMemo(() => {
    const found = new Map<Line, Segment[]>();
    for (const [index, other] of partners(part)) {
      const line = part[index] as Line;
      const partner = part[other] as Line;
      if (line.kind !== "removed") continue;
      const changed = changedWords(line.text, partner.text);
      if (changed !== null) found.set(line, changed.left).set(partner, changed.right);
    }
    return found;
  }, [part]);
  return part.map((line, index) => (
    <tr key={index} data-kind={line.kind}>
      <td className={styles.number} data-number={line.oldNumber ?? ""} />
      <td className={styles.number} data-number={line.newNumber ?? ""} data-other={line.oldNumber ?? ""} />
      <td className={styles.text} data-sign={SIGNS[line.kind]}>
        <Text line={line} words={words.get(line)} colours={colours} />
      </td>
    </tr>
  ));
}

function Split({ part, colours }: { part: readonly Line[]; colours: Colours }) {
  const rows = useMemo(
    () =>
      pairs(part).map((row) => ({
        ...row,
        words: row.left?.kind === "removed" && row.right ? changedWords(row.left.text, row.right.text) : null,
      })),
    [part],
  );
  return rows.map(({ left, right, words }, index) => (
    <tr key={index}>
      {(
        [
          [left, left?.oldNumber, words?.left],
          [right, right?.newNumber, words?.right],
        ] as const
      ).map(([line, number, marked], side) => (
        <Fragment key={side}>
          <td className={styles.number} data-kind={line?.kind ?? "none"} data-number={number ?? ""} />
          <td
            className={styles.text}
            data-kind={line?.kind ?? "none"}
            data-sign={line === null ? " " : SIGNS[line.kind]}
          >
            {line === null ? null : <Text line={line} words={marked} colours={colours} />}
          </td>
        </Fragment>
      ))}
    </tr>
  ));
}

function Text({ line, words, colours }: { line: Line; words: readonly Segment[] | undefined; colours: Colours }) {
  const tokens =
    line.kind === "removed" ? colours.old?.[(line.oldNumber ?? 0) - 1] : colours.new?.[(line.newNumber ?? 0) - 1];
  if (tokens === undefined && words === undefined) return line.text === "" ? <br /> : line.text;
  const pieces = overlay(
    tokens ?? [{ text: line.text, className: "" }],
    words ?? [{ text: line.text, changed: false }],
  );
  if (pieces.length === 0) return <br />;
  return pieces.map((piece, index) =>
    piece.className === "" && !piece.changed ? (
      piece.text
    ) : (
      <span key={index} className={piece.changed ? `${piece.className} ${styles.word}` : piece.className}>
        {piece.text}
      </span>
    ),
  );
}
