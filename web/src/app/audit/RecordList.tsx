import { type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button } from "../../ui/Button";
import { aboutOf, type AuditRecord, moment, whoOf, wordOf } from "./record";
import { MOST, type useRecords } from "./useRecords";
import styles from "./Audit.module.css";

interface Props {
  found: ReturnType<typeof useRecords>;
  filtered: boolean;
  shown: string | null;
  show(id: string): void;
  clear(): void;
  refresh(): void;
}

/** Rows drawn above and below what is seen. */
const MARGIN = 8;
/** So many rows before the end older records are asked for. */
const AHEAD = 40;

/** The records, the latest first. Only those in sight are in the page: there may be thousands. */
export function RecordList({ found, filtered, shown, show, clear, refresh }: Props) {
  const { records, cursor, loading, trouble, older } = found;
  const scroller = useRef<HTMLDivElement>(null);
  const { first, last, height, follow } = useWindow(scroller, records.length);
  const [active, setActive] = useState(0);
  const current = Math.min(active, Math.max(0, records.length - 1));
  useEffect(() => {
    if (!loading && last + AHEAD >= records.length) older();
  }, [last, records.length, loading, older]);
  const focused = useRef(false);
  useLayoutEffect(() => {
    if (!focused.current) return;
    focused.current = false;
    scroller.current?.querySelector<HTMLElement>(`[data-row="${current}"]`)?.focus({ preventScroll: true });
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, last - first - 2 * MARGIN - 1);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const to = event.key === "Home" ? 0 : event.key === "End" ? records.length - 1 : current + (steps[event.key] ?? 0);
    const next = Math.max(0, Math.min(records.length - 1, to));
    if (!(event.key in steps) && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    focused.current = true;
    setActive(next);
    follow(next);
  };
  const rows = [...Array(Math.max(0, last - first)).keys()].map((place) => first + place);
  if (records.length > 0 && (current < first || current >= last)) rows.push(current); // what has the focus stays
  return (
    <div className={styles.records} ref={scroller}>
      <ul
        aria-label="Records"
        aria-busy={loading}
        style={{ height: records.length * height }}
        onKeyDown={onKeyDown}
        hidden={records.length === 0}
      >
        {rows.map((index) => {
          const record = records[index];
          return record === undefined ? null : (
            <Row
              key={record.id}
              record={record}
              index={index}
              of={cursor === null ? records.length : -1}
              top={index * height}
              current={index === current}
              shown={record.id === shown}
              show={() => {
                setActive(index);
                show(record.id);
              }}
            />
          );
        })}
      </ul>
      <div className={styles.end} role="status">
        {trouble !== null ? (
          <div role="alert">
            <b>{trouble.message}</b> {trouble.hint}{" "}
            <Button look="outline" onClick={refresh}>
              Try again
            </Button>
          </div>
        ) : loading ? (
          <span>{searching(records, cursor)}</span>
        ) : records.length === 0 ? (
          filtered ? (
            <div>
              No record matches these filters.{" "}
              <Button look="outline" onClick={clear}>
                Clear filters
              </Button>
            </div>
          ) : (
            "Nothing is recorded yet. Start a session: what its agent does and who allows it is recorded here."
          )
        ) : cursor === null ? (
          "These are all."
        ) : records.length >= MOST ? (
          `The latest ${MOST.toLocaleString()} are shown. Set “Before” to an earlier time to see older ones.`
        ) : null}
      </div>
    </div>
  );
}

/** How far back a long search has come. */
function searching(records: readonly AuditRecord[], cursor: string | null): string {
  const back = (cursor ?? "").split("/")[0] ?? "";
  return back === "" ? "Loading…" : `Looking for ${records.length === 0 ? "records" : "more"} before ${moment(back)}…`;
}

interface RowProps {
  record: AuditRecord;
  index: number;
  of: number;
  top: number;
  current: boolean;
  shown: boolean;
  show(): void;
}

function Row({ record, index, of, top, current, shown, show }: RowProps) {
  const { word, tone } = wordOf(record);
  const agent = typeof record.agent === "string" ? record.agent : "";
  return (
    <li style={{ top }} aria-setsize={of} aria-posinset={index + 1}>
      <button
        type="button"
        className={styles.row}
        data-row={index}
        data-tone={tone}
        aria-current={shown || undefined}
        tabIndex={current ? 0 : -1}
        onClick={show}
      >
        <time dateTime={record.at}>{moment(record.at)}</time>
        <span className={styles.word}>{word}</span>
        <bdi className={styles.about}>{aboutOf(record)}</bdi>
        <bdi className={styles.who}>{[agent, whoOf(record)].filter(Boolean).join(" · ")}</bdi>
      </button>
    </li>
  );
}

/** Which rows are in sight, all of one height. */
function useWindow(scroller: { current: HTMLDivElement | null }, count: number) {
  const [seen, setSeen] = useState({ top: 0, room: 800, height: 36 });
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box === null) return;
    const measure = () => {
      const height = Number.parseFloat(getComputedStyle(box).getPropertyValue("--row")) || 36;
      setSeen((before) =>
        before.top === box.scrollTop && before.room === box.clientHeight && before.height === height
          ? before
          : { top: box.scrollTop, room: box.clientHeight, height },
      );
    };
    const watch = new ResizeObserver(measure);
    watch.observe(box);
    box.addEventListener("scroll", measure, { passive: true });
    measure();
    return () => {
      watch.disconnect();
      box.removeEventListener("scroll", measure);
    };
  }, [scroller]);
  const first = Math.max(0, Math.floor(seen.top / seen.height) - MARGIN);
  const last = Math.min(count, Math.ceil((seen.top + seen.room) / seen.height) + MARGIN);
  const follow = (index: number) => {
    const box = scroller.current;
    if (box === null) return;
    const top = index * seen.height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + seen.height > box.scrollTop + box.clientHeight) box.scrollTop = top + seen.height - box.clientHeight;
  };
  return { first: Math.min(first, count), last, height: seen.height, follow };
}
