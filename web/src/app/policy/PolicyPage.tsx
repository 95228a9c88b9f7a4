import { type ReactNode, useEffect, useState } from "react";
import { fetchOwn } from "../login";
import { RecentDecisions } from "./RecentDecisions";
import { RememberedAnswers } from "./RememberedAnswers";
import styles from "./PolicyPage.module.css";

interface Rule {
  name: string;
  from: string;
  file: string;
  decision: string;
  [key: string]: unknown;
}

interface Rules {
  workspace: string;
  rules: Rule[];
  trouble: string | null;
}

/** The rules in force, remembered answers, and what was decided lately. */
export default function PolicyPage({ drawer, readOnly }: { drawer: ReactNode; readOnly: boolean }) {
  const [policy, trouble] = useAnswer<Rules>("/api/policy");
  return (
    <main className={styles.page}>
      <div className={styles.top}>
        {drawer}
        <h1>Policy</h1>
      </div>
      <div className={styles.content}>
        {trouble === null ? null : <p role="alert">{trouble}</p>}
        {policy?.trouble ? <p role="alert">{`The files are not what is in force: ${policy.trouble}`}</p> : null}
        <section aria-label="Rules in force">
          <h2>Rules in force</h2>
          {policy === null && trouble === null ? <p aria-busy="true">Loading…</p> : null}
          {policy?.rules.length === 0 ? (
            <p>There are no rules: a person is asked. Rules stand in config.toml, under [[policy.rules]].</p>
          ) : null}
          <ul>
            {policy?.rules.map((rule) => (
              <li key={`${rule.from}\n${rule.name}`} data-decision={rule.decision}>
                <strong>{rule.name}</strong> <span className={styles.word}>{rule.decision}</span>
                <code>{conditions(rule)}</code>
                <small>{`${rule.from}, ${rule.file}`}</small>
              </li>
            ))}
          </ul>
        </section>
        <h2>Remembered answers</h2>
        <RememberedAnswers mayForget={!readOnly} />
        <RecentDecisions />
      </div>
    </main>
  );
}

const HIDDEN = ["name", "from", "file", "decision", "match", "not_match", "reason"];

function conditions(rule: Rule): string {
  const shown = Object.entries(rule).filter(([key]) => !HIDDEN.includes(key));
  return shown.map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join("; ") || "always";
}

/** What the gateway answers to a GET, and why it does not. */
function useAnswer<T>(path: string): [T | null, string | null] {
  const [answer, setAnswer] = useState<T | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  useEffect(() => {
    let here = true;
    fetchOwn(path)
      .then(async (response) => {
        const said = (await response.json()) as T & { error?: string };
        if (!here) return;
        if (response.ok) setAnswer(said);
        else setTrouble(said.error ?? `The gateway answered ${response.status}.`);
      })
      .catch((error: Error) => here && setTrouble(`The policy cannot be read. ${error.message}`));
    return () => {
      here = false;
    };
  }, [path]);
  return [answer, trouble];
}
