import { useEffect, useState } from "react";
import { Button, IconButton } from "../../ui/Button";
import { asTrouble, lines, Trouble } from "./gateway";
import { exactly } from "./record";
import styles from "./Audit.module.css";

interface Report {
  readonly consistent: boolean;
  readonly anchoredUpTo: string | null;
  readonly records: number;
  readonly problems: readonly { readonly chain: string; readonly record: number; readonly problem: string }[];
  readonly notes: readonly string[];
  readonly removed: readonly { readonly shown: boolean }[];
  readonly chains: readonly { readonly signed: number; readonly last: number }[];
}

interface Progress {
  readonly records: number;
  readonly of: number;
}

type Line = Partial<Progress> & { readonly report?: Report; readonly error?: string };

/** Checks that nothing was changed: how far it is, then what is proved up to when, or exactly what is wrong. */
export function Check({ close, show }: { close(): void; show(id: string): void }) {
  const [progress, setProgress] = useState<Progress>({ records: 0, of: 0 });
  const [report, setReport] = useState<Report | null>(null);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const search = new AbortController();
    const check = async () => {
      const path = "/api/audit/verify?progress=true";
      for await (const line of lines<Line>(path, { method: "POST", signal: search.signal })) {
        if (search.signal.aborted) return;
        if (line.error !== undefined) throw new Trouble(line.error, "");
        if (line.report !== undefined) setReport(line.report);
        else setProgress({ records: line.records ?? 0, of: line.of ?? 0 });
      }
    };
    setReport(null);
    setTrouble(null);
    check().catch((error: unknown) => search.signal.aborted || setTrouble(asTrouble(error)));
    return () => search.abort();
  }, [round]);
  return (
    <section className={styles.check} aria-label="Check of the audit" data-consistent={report?.consistent}>
      <div className={styles.checkTop}>
        {report !== null ? (
          <Result report={report} show={show} />
        ) : trouble !== null ? (
          <p role="alert">
            <b>{trouble.message}</b> {trouble.hint}
          </p>
        ) : (
          <Running {...progress} />
        )}
        <IconButton
          icon="close"
          label={report === null && trouble === null ? "Stop the check" : "Close"}
          onClick={close}
        />
      </div>
      {report === null && trouble === null ? null : (
        <Button look="outline" onClick={() => setRound(round + 1)}>
          Check again
        </Button>
      )}
    </section>
  );
}

function Running({ records, of }: Progress) {
  return (
    <div className={styles.running}>
      <label>
        Checking every record…
        <progress max={of || 1} value={of === 0 ? undefined : Math.min(records, of)} />
      </label>
      <span>{of === 0 ? "" : `${records.toLocaleString()} of ${of.toLocaleString()}`}</span>
    </div>
  );
}

function Result({ report, show }: { report: Report; show(id: string): void }) {
  const { consistent, anchoredUpTo, records, problems, notes, removed, chains } = report;
  const signed = chains.filter((chain) => chain.signed >= chain.last).length;
  const what = `${records.toLocaleString()} ${records === 1 ? "record" : "records"} in ${count(chains.length, "chain")}`;
  return (
    <div className={styles.result} role="status">
      {consistent ? (
        <>
          <p>
            <b>Consistent here.</b> {what}; {signed} of {chains.length} signed to the end.
          </p>
          {anchoredUpTo === null ? (
            <p>
              Not anchored elsewhere: who has the key and may write here could have written it anew.{" "}
              <code>audit.anchors</code> keeps signed heads elsewhere.
            </p>
          ) : (
            <p>
              <b>Anchored elsewhere up to {exactly(anchoredUpTo)}.</b> No record from before was changed
              {removed.length === 0
                ? " or removed since its head was kept there."
                : ` since its head was kept there, and none removed but by age: ${removed.filter(({ shown }) => shown).length} of ${count(removed.length, "removal")} shown by heads elsewhere.`}
            </p>
          )}
        </>
      ) : (
        <>
          <p>
            <b>Not consistent.</b> {what}; {count(problems.length, "problem")}: these records were changed, removed or
            cut off.
          </p>
          <ul tabIndex={0} aria-label="Problems">
            {problems.map(({ chain, record, problem }, index) => (
              <li key={index}>
                <button type="button" onClick={() => show(`${chain}:${record}`)}>
                  {`${chain}:${record}`}
                </button>
                : {problem}
              </li>
            ))}
          </ul>
        </>
      )}
      {notes.length === 0 ? null : (
        <details>
          <summary>{count(notes.length, "note")}</summary>
          <ul>
            {notes.map((note, index) => (
              <li key={index}>{note}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function count(many: number, word: string): string {
  return `${many.toLocaleString()} ${word}${many === 1 ? "" : "s"}`;
}
