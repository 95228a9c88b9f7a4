import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import { IconButton } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Menu, type MenuEntry } from "../../ui/Menu";
import { download } from "../login";
import { useChat, usePage } from "../page";
import { Check } from "./Check";
import { auditAddress, changed, type Filter, filterOf, queryOf } from "./filter";
import { Filters } from "./Filters";
import { HourBars } from "./HourBars";
import { RecordDetail } from "./RecordDetail";
import { RecordList } from "./RecordList";
import { useRecords } from "./useRecords";
import styles from "./Audit.module.css";

/** What agents did and who allowed it: filters, how much of it when, the records, and the proof. */
export default function AuditPage({ drawer }: { drawer: ReactNode }) {
  const [filter, setFilter] = useFilter();
  const [refreshed, setRefreshed] = useState(0);
  const [shown, setShown] = useState<string | null>(null);
  const [checking, setChecking] = useState(false);
  const admin = usePage(({ hello }) => hello === null || hello.role === "admin");
  const found = useRecords(filter, refreshed);
  const narrow = useCallback((changes: Filter) => setFilter((before) => changed(before, changes)), [setFilter]);
  return (
    <main className={styles.page}>
      <div className={styles.top}>
        {drawer}
        <h1>Audit</h1>
        <IconButton icon="shield" label="Check that nothing was changed" onClick={() => setChecking(true)} />
        <Export filter={filter} />
        <IconButton icon="retry" label="Look again" onClick={() => setRefreshed((times) => times + 1)} />
      </div>
      {checking ? <Check close={() => setChecking(false)} show={setShown} /> : null}
      <Filters filter={filter} change={narrow} clear={() => setFilter(() => ({}))} />
      <HourBars filter={filter} refreshed={refreshed} narrow={narrow} />
      {admin ? null : (
        <p className={styles.hint}>Records about tokens, logins and configuration are for the role admin.</p>
      )}
      <div className={styles.body}>
        <RecordList
          found={found}
          filtered={Object.keys(filter).length > 0}
          clear={() => setFilter(() => ({}))}
          refresh={() => setRefreshed((times) => times + 1)}
          shown={shown}
          show={setShown}
        />
        {shown === null ? null : (
          <RecordDetail key={shown} id={shown} show={setShown} close={() => setShown(null)} narrow={narrow} />
        )}
      </div>
    </main>
  );
}

/** The filters in the address, which links change too. */
function useFilter(): [Filter, (change: (before: Filter) => Filter) => void] {
  const [filter, setFilter] = useState(() => filterOf(window.location.hash));
  useEffect(() => {
    const read = () => setFilter(filterOf(window.location.hash));
    window.addEventListener("hashchange", read);
    return () => window.removeEventListener("hashchange", read);
  }, []);
  const set = useCallback((change: (before: Filter) => Filter) => {
    const next = change(filterOf(window.location.hash));
    window.history.replaceState(null, "", auditAddress(next));
    setFilter(next);
  }, []);
  return [filter, set];
}

function Export({ filter }: { filter: Filter }) {
  const chat = useChat();
  const entries = useMemo(() => {
    const save = (format: string) => () => {
      download(`/api/audit/export?${queryOf(filter, { format })}`, `audit.${format}`).catch((error: Error) =>
        chat.toast(`The audit was not exported. ${error.message}`, "error"),
      );
    };
    const filtered = Object.keys(filter).length > 0 ? "what is shown" : "everything";
    return ["ndjson", "csv"].map(
      (format): MenuEntry => ({
        label: `Export ${filtered} as ${format.toUpperCase()}`,
        icon: "download",
        run: save(format),
      }),
    );
  }, [chat, filter]);
  return (
    <Menu label="Export" entries={entries}>
      <Icon name="download" />
    </Menu>
  );
}
