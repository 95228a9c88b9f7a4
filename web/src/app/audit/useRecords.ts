import { useCallback, useEffect, useRef, useState } from "react";
import { ask, asTrouble, type Trouble } from "./gateway";
import { type Filter, queryOf } from "./filter";
import type { AuditRecord } from "./record";

/** Records asked for at once. */
const PAGE = 200;
/** Records that a page holds; who wants older ones narrows the time. */
export const MOST = 20_000;

interface Found {
  readonly records: readonly AuditRecord[];
  /** Where older ones begin; null: there are none. */
  readonly cursor: string | null;
  readonly loading: boolean;
  readonly trouble: Trouble | null;
}

const BEGINNING: Found = { records: [], cursor: "", loading: true, trouble: null };

/** The records that match, the latest first, and what loads older ones. */
export function useRecords(filter: Filter, refreshed: number): Found & { older(): void } {
  const [found, setFound] = useState<Found>(BEGINNING);
  const current = useRef({ found, search: new AbortController() });
  const query = queryOf(filter);

  const show = useCallback((next: Found) => {
    current.current.found = next;
    setFound(next);
  }, []);

  const load = useCallback(
    async (wanted: number) => {
      const { signal } = current.current.search;
      let now = current.current.found;
      show({ ...now, loading: true, trouble: null });
      try {
        // A search for what is rare ends early and says from where it goes on.
        while (now.records.length < wanted && now.cursor !== null && !signal.aborted) {
          const more: Record<string, string> = { limit: String(PAGE), cursor: now.cursor };
          const path = `/api/audit?${[query, new URLSearchParams(more).toString()].filter(Boolean).join("&")}`;
          const page = await ask<{ records: AuditRecord[]; nextCursor?: string }>(path, signal);
          if (signal.aborted) return;
          const records = [...now.records, ...page.records.reverse()];
          now = { records, cursor: page.nextCursor ?? null, loading: true, trouble: null };
          show(now);
        }
        if (!signal.aborted) show({ ...now, loading: false });
      } catch (error) {
        if (!signal.aborted) show({ ...now, loading: false, trouble: asTrouble(error) });
      }
    },
    [query, show],
  );

  useEffect(() => {
    const search = new AbortController();
    current.current = { found: BEGINNING, search };
    show(BEGINNING);
    void load(1);
    return () => search.abort();
  }, [load, show, refreshed]);

  const older = useCallback(() => {
    const { loading, cursor, records, trouble } = current.current.found;
    if (!loading && trouble === null && cursor !== null && records.length < MOST) void load(records.length + 1);
  }, [load]);
  return { ...found, older };
}
