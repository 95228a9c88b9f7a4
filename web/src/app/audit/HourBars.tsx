import { type CSSProperties, type KeyboardEvent, useEffect, useMemo, useState } from "react";
import { Button } from "../../ui/Button";
import { type Filter, queryOf } from "./filter";
import { lines } from "./gateway";
import { added, type Bar, barName, barsOf, type Hours, type Tally, total, words } from "./hours";
import styles from "./Audit.module.css";

interface Props {
  filter: Filter;
  refreshed: number;
  narrow(changes: Filter): void;
}

interface Counted {
  readonly hours: Hours;
  /** From 0 to 1. */
  readonly done: number;
  readonly failed: boolean;
}

const NONE: Counted = { hours: new Map(), done: 0, failed: false };

/** How many records there are in each hour, day or month; a click shows that time alone. */
export function HourBars({ filter, refreshed, narrow }: Props) {
  const { hours, done, failed } = useCounts(filter, refreshed);
  const { unit, bars } = useMemo(() => barsOf(hours), [hours]);
  const all = useMemo(() => total(hours), [hours]);
  const most = Math.max(1, ...bars.map(({ records }) => records));
  const [active, setActive] = useState<number | null>(null);
  const current = Math.min(active ?? bars.length - 1, bars.length - 1);
  const show = ({ since, until }: Bar) => narrow({ since: since.toISOString(), until: until.toISOString() });
  const narrowed = filter.since !== undefined || filter.until !== undefined;
  if (failed) return null; // the list says why
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(bars.length - 1, current + step));
    setActive(next);
    (event.currentTarget.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <section className={styles.hours} aria-label="Timeline">
      <div className={styles.sum}>
        <span role="status">
          {done < 1 ? `Counting, ${Math.floor(done * 100)} %: ${words(all)} so far` : words(all)}
        </span>
        {narrowed ? <Button onClick={() => narrow({ since: "", until: "" })}>Show the whole time</Button> : null}
      </div>
      {bars.length === 0 ? null : (
        <>
          <div className={styles.bars} role="group" aria-label={`Records of each ${unit}`} onKeyDown={onKeyDown}>
            {bars.map((bar, index) => (
              <button
                key={bar.since.getTime()}
                type="button"
                className={styles.bar}
                tabIndex={index === current ? 0 : -1}
                title={`${barName(bar, unit)}: ${words(bar)}`}
                aria-label={`${barName(bar, unit)}: ${words(bar)}`}
                onClick={() => {
                  setActive(index);
                  if (bar.records > 0) show(bar);
                }}
              >
                <span className={styles.share} style={heights(bar, most)} />
              </button>
            ))}
          </div>
          <div className={styles.ends} aria-hidden="true">
            <span>{bars[0] === undefined ? "" : barName(bars[0], unit)}</span>
            <span>{bars.length < 2 ? "" : barName(bars.at(-1) as Bar, unit)}</span>
          </div>
        </>
      )}
    </section>
  );
}

function heights(bar: Bar, most: number): CSSProperties {
  const share = (count: number) => `${bar.records === 0 ? 0 : (100 * count) / bar.records}%`;
  return {
    height: bar.records === 0 ? 0 : `max(3px, ${(100 * bar.records) / most}%)`,
    "--denied": share(bar.denied),
    "--unmediated": share(bar.denied + bar.unmediated),
  } as CSSProperties;
}

function useCounts(filter: Filter, refreshed: number): Counted {
  const [counted, setCounted] = useState(NONE);
  const query = queryOf(filter);
  useEffect(() => {
    const search = new AbortController();
    let now = NONE;
    const count = async () => {
      const steps = lines<{ bytes: number; of: number; hours: Record<string, Tally> }>(`/api/audit/counts?${query}`, {
        signal: search.signal,
      });
      for await (const { bytes, of, hours } of steps) {
        if (search.signal.aborted) return;
        now = { hours: added(now.hours, hours), done: of === 0 ? 1 : bytes / of, failed: false };
        setCounted(now);
      }
    };
    setCounted((before) => ({ ...before, done: 0 }));
    count().catch(() => search.signal.aborted || setCounted({ ...NONE, failed: true }));
    return () => search.abort();
  }, [query, refreshed]);
  return counted;
}
