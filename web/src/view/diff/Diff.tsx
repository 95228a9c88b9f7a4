import { memo, useCallback, useMemo, useState } from "react";
import type { Diff as DiffContent } from "../../bridge/events";
import { CopyButton } from "../CopyButton";
import { Icon } from "../icons";
import { languageOfPath } from "../markdown/highlight";
import { useHighlight } from "../markdown/CodeBlock";
import { useWidth } from "../width";
import { plural } from "../words";
import { Counts } from "./Changes";
import { Frame } from "./Frame";
import { diffLines, type Hunk, type LineDiff } from "./hunks";
import { setLayout, useLayout } from "./layout";
import { Rows } from "./Rows";
import { tokensByLine } from "./tokens";
import "../markdown/colours.css";
import styles from "./Diff.module.css";

interface Props {
  diff: DiffContent;
  cwd?: string;
  /** One column whatever the reader prefers. */
  narrow?: boolean;
  /** Nothing is folded for being long: a question must show all that it is about. */
  whole?: boolean;
}

/** Two columns need this much room to be of use. */
const SPLIT_WIDTH = 620;
/** With more changed lines than this, hunks after the first few begin closed. */
const LARGE = 400;
const OPEN_AT_FIRST = 3;

/** What changed in a file: by hunk, with line numbers, in one column or two. */
export const Diff = memo(function Diff({ diff, cwd, narrow = false, whole = false }: Props) {
  const [root, width] = useWidth();
  const preferred = useLayout();
  const lines = useMemo(() => diffLines(diff.oldText ?? "", diff.newText), [diff.oldText, diff.newText]);
  const roomy = !narrow && !isNew(diff) && (width === 0 || width >= SPLIT_WIDTH);
  const split = roomy && preferred === "split";
  const head = (
    <>
      {isNew(diff) ? <span className={styles.badge}>new</span> : null}
      <Counts added={lines.added} removed={lines.removed} />
      <span className={styles.space} />
      {roomy ? <LayoutToggle split={split} /> : null}
      <CopyButton text={diff.newText} label="Copy the new text" iconOnly />
    </>
  );
  return (
    <Frame diff={diff} cwd={cwd} ref={root} split={split} head={head}>
      {lines.hunks.length === 0 ? <p className={styles.note}>Nothing changed.</p> : null}
      {lines.coarse ? <p className={styles.note}>The texts differ too much to compare line by line.</p> : null}
      <Hunks lines={lines} split={split} diff={diff} whole={whole} />
    </Frame>
  );
});

function isNew(diff: DiffContent): boolean {
  return diff.oldText === null || diff.oldText === undefined || diff.oldText === "";
}

function LayoutToggle({ split }: { split: boolean }) {
  return (
    <span className={styles.toggle} role="group" aria-label="Layout of changes">
      <button
        type="button"
        aria-pressed={!split}
        aria-label="One column"
        title="One column"
        onClick={() => setLayout("inline")}
      >
        <Icon name="inline" />
      </button>
      <button
        type="button"
        aria-pressed={split}
        aria-label="Side by side"
        title="Side by side"
        onClick={() => setLayout("split")}
      >
        <Icon name="split" />
      </button>
    </span>
  );
}

interface Revealed {
  /** Lines shown after the hunk before a gap, and before the one after it. */
  readonly top: number;
  readonly bottom: number;
}

const NOTHING: Revealed = { top: 0, bottom: 0 };
const STEP = 20;

function Hunks({ lines, split, diff, whole }: { lines: LineDiff; split: boolean; diff: DiffContent; whole: boolean }) {
  const [revealed, setRevealed] = useState<ReadonlyMap<number, Revealed>>(new Map());
  const large = !whole && lines.added + lines.removed > LARGE;
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const language = languageOfPath(diff.path) ?? "";
  const oldHtml = useHighlight(diff.oldText ?? "", language);
  const newHtml = useHighlight(diff.newText, language);
  const colours = useMemo(
    () => ({
      old: oldHtml === null ? null : tokensByLine(oldHtml),
      new: newHtml === null ? null : tokensByLine(newHtml),
    }),
    [oldHtml, newHtml],
  );
  const reveal = useCallback((gap: number, change: Revealed) => {
    setRevealed((before) => {
      const known = before.get(gap) ?? NOTHING;
      return new Map(before).set(gap, { top: known.top + change.top, bottom: known.bottom + change.bottom });
    });
  }, []);

  const sections = [];
  let end = 0;
  for (let index = 0; index <= lines.hunks.length; index++) {
    const hunk = lines.hunks[index];
    const next = hunk?.start ?? lines.lines.length;
    const { top, bottom } = revealed.get(index) ?? NOTHING;
    const from = Math.min(next, end + top);
    const to = Math.max(from, next - bottom);
    if (from > end)
      sections.push(
        <Rows key={`t${index}`} lines={lines.lines} start={end} end={from} split={split} colours={colours} />,
      );
    if (to > from && lines.hunks.length > 0) {
      sections.push(
        <Gap
          key={`g${index}`}
          index={index}
          count={to - from}
          last={hunk === undefined}
          split={split}
          onReveal={reveal}
        />,
      );
    }
    if (hunk === undefined) break;
    const closed = large && index >= OPEN_AT_FIRST && !opened.has(index);
    if (closed) {
      sections.push(
        <ClosedHunk
          key={`c${index}`}
          hunk={hunk}
          lines={lines}
          split={split}
          onOpen={() => setOpened(new Set(opened).add(index))}
        />,
      );
    } else {
      sections.push(
        <Rows
          key={`h${index}`}
          lines={lines.lines}
          start={to}
          end={hunk.end}
          split={split}
          colours={colours}
          whole={whole}
        />,
      );
    }
    end = hunk.end;
  }
  return (
    <div className={styles.scroll}>
      <table className={styles.table} data-split={split}>
        <caption className="visually-hidden">
          {plural(lines.added, "line")} added, {plural(lines.removed, "line")} removed
        </caption>
        <colgroup>
          <col className={styles.narrow} />
          {split ? <col /> : <col className={styles.narrow} />}
          {split ? <col className={styles.narrow} /> : <col />}
          {split ? <col /> : null}
        </colgroup>
        {sections}
      </table>
    </div>
  );
}

interface GapProps {
  index: number;
  count: number;
  last: boolean;
  split: boolean;
  onReveal: (gap: number, change: Revealed) => void;
}

function Gap({ index, count, last, split, onReveal }: GapProps) {
  const few = count <= STEP * 2;
  return (
    <tbody>
      <tr className={styles.gap}>
        <td colSpan={split ? 4 : 3}>
          <div className={styles.gapLine}>
            {index > 0 && !few ? (
              <button
                type="button"
                onClick={() => onReveal(index, { top: STEP, bottom: 0 })}
                aria-label={`Show ${STEP} more lines after the change above`}
              >
                <Icon name="down" />
              </button>
            ) : null}
            {!last && !few ? (
              <button
                type="button"
                onClick={() => onReveal(index, { top: 0, bottom: STEP })}
                aria-label={`Show ${STEP} more lines before the change below`}
              >
                <Icon name="up" />
              </button>
            ) : null}
            <button
              type="button"
              onClick={() => onReveal(index, { top: count, bottom: 0 })}
              aria-label={`Show ${plural(count, "unchanged line")}`}
            >
              {plural(count, "unchanged line")}
            </button>
          </div>
        </td>
      </tr>
    </tbody>
  );
}

function ClosedHunk({
  hunk,
  lines,
  split,
  onOpen,
}: {
  hunk: Hunk;
  lines: LineDiff;
  split: boolean;
  onOpen: () => void;
}) {
  const first = lines.lines[hunk.start];
  return (
    <tbody>
      <tr className={styles.gap}>
        <td colSpan={split ? 4 : 3}>
          <div className={styles.gapLine}>
            <button type="button" onClick={onOpen}>
              Show the change at line {first?.newNumber ?? first?.oldNumber ?? 1}
            </button>
            <Counts added={hunk.added} removed={hunk.removed} />
          </div>
        </td>
      </tr>
    </tbody>
  );
}
