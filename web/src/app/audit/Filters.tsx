import { type ReactNode, useEffect, useId, useState } from "react";
import { Button } from "../../ui/Button";
import { matchesMedia } from "../../view/media";
import { usePage } from "../page";
import { asLocal, type Filter, type FilterName, fromLocal, NAMES } from "./filter";
import styles from "./Audit.module.css";

interface Props {
  filter: Filter;
  change(changes: Filter): void;
  clear(): void;
}

/** So long after the last key what was typed is looked for. */
const PAUSE_MS = 400;

const KINDS = [
  "decision",
  "answer",
  "tool_begun",
  "tool_ended",
  "unmediated",
  "mode_changed",
  "session_begun",
  "session_loaded",
  "session_exported",
  "session_deleted",
  "login",
  "token_made",
  "token_revoked",
  "gateway_started",
  "gateway_stopped",
];

export function Filters({ filter, change, clear }: Props) {
  const agents = usePage(({ hello }) => hello?.agents);
  const count = NAMES.filter((name) => filter[name] !== undefined).length;
  const [open, setOpen] = useState(() => matchesMedia("(min-width: 761px)"));
  return (
    <details
      className={styles.filters}
      open={open}
      onToggle={(event) => setOpen((event.target as HTMLDetailsElement).open)}
    >
      <summary>{count === 0 ? "Filters" : `Filters (${count})`}</summary>
      <form role="search" aria-label="Filter records" onSubmit={(event) => event.preventDefault()}>
        <Typed name="session" label="Session" filter={filter} change={change} />
        <Typed name="agent" label="Agent" filter={filter} change={change} offers={agents?.map(({ name }) => name)} />
        <Typed name="tool" label="Tool" filter={filter} change={change} />
        <Field label="Decision">
          {(id) => (
            <select
              id={id}
              value={filter.decision ?? ""}
              onChange={(event) => change({ decision: event.target.value })}
            >
              <option value="">any</option>
              <option value="allow">allow</option>
              <option value="deny">deny</option>
              <option value="ask">ask</option>
            </select>
          )}
        </Field>
        <Typed name="by" label="By person or rule" filter={filter} change={change} />
        <Typed name="kind" label="Kind" filter={filter} change={change} offers={KINDS} />
        <Time name="since" label="Since" filter={filter} change={change} />
        <Time name="until" label="Before" filter={filter} change={change} />
        <label className={styles.tick}>
          <input
            type="checkbox"
            checked={filter.unmediated === "true"}
            onChange={(event) => change({ unmediated: event.target.checked ? "true" : "" })}
          />
          Only what ran without a decision
        </label>
        {count === 0 ? null : (
          <Button look="outline" onClick={clear}>
            Clear filters
          </Button>
        )}
      </form>
    </details>
  );
}

function Field({ label, children }: { label: string; children(id: string): ReactNode }) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  );
}

interface OneProps {
  name: FilterName;
  label: string;
  filter: Filter;
  change(changes: Filter): void;
  offers?: readonly string[] | undefined;
}

function Typed({ name, label, filter, change, offers }: OneProps) {
  const list = useId();
  const given = filter[name] ?? "";
  const [typed, setTyped] = useState(given);
  useEffect(() => setTyped(given), [given]);
  useEffect(() => {
    if (typed === given) return;
    const timer = setTimeout(() => change({ [name]: typed.trim() }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed, given, name, change]);
  return (
    <Field label={label}>
      {(id) => (
        <>
          <input
            id={id}
            type="search"
            value={typed}
            list={offers === undefined ? undefined : list}
            autoCapitalize="off"
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setTyped(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter") change({ [name]: typed.trim() });
            }}
          />
          {offers === undefined ? null : (
            <datalist id={list}>
              {offers.map((offer) => (
                <option key={offer} value={offer} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

function Time({ name, label, filter, change }: OneProps) {
  return (
    <Field label={label}>
      {(id) => (
        <input
          id={id}
          type="datetime-local"
          value={asLocal(filter[name])}
          onChange={(event) => change({ [name]: fromLocal(event.target.value) })}
        />
      )}
    </Field>
  );
}
