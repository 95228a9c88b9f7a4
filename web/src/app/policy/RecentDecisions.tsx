import { useCallback, useEffect, useState } from "react";
import { own } from "../../model/untrusted";
import { Button } from "../../ui/Button";
import { ENDS } from "../../view/question/PermissionAnswer";
import { Title } from "../../view/tool/Title";
import { auditAddress } from "../audit/filter";
import { fetchOwn } from "../login";
import { sessionAddress } from "../route";
import styles from "./PolicyPage.module.css";

interface Decision {
  readonly id: string;
  readonly session: string;
  readonly time: string;
  readonly title: string;
  readonly decision: string;
  readonly rule?: string;
  readonly by?: string;
}

interface Page {
  readonly decisions: readonly Decision[];
  readonly nextCursor?: string;
}

/** What was decided about tool calls, the latest first; older ones page by page. */
export function RecentDecisions() {
  const [decisions, setDecisions] = useState<readonly Decision[]>([]);
  const [cursor, setCursor] = useState<string | null>("");
  const [loading, setLoading] = useState(true);
  const [trouble, setTrouble] = useState<string | null>(null);
  const load = useCallback((from: string) => {
    setLoading(true);
    setTrouble(null);
    read(from)
      .then((page) => {
        setDecisions((before) => (from === "" ? page.decisions : [...before, ...page.decisions]));
        setCursor(page.nextCursor ?? null);
      })
      .catch((error: Error) => setTrouble(error.message))
      .finally(() => setLoading(false));
  }, []);
  useEffect(() => load(""), [load]);
  return (
    <section aria-label="Recent decisions" aria-busy={loading}>
      <h2>Recent decisions</h2>
      <ul>
        {decisions.map((one) => (
          <li key={one.id} data-decision={one.decision}>
            <a href={sessionAddress(one.session)}>
              <Title text={one.title} />
            </a>{" "}
            <span className={styles.word}>{one.decision}</span>
            <small>{`${who(one)}, ${new Date(one.time).toLocaleString()}`}</small>
          </li>
        ))}
      </ul>
      {trouble !== null ? (
        <p role="alert">
          {trouble}{" "}
          <Button look="outline" onClick={() => load(cursor ?? "")}>
            Try again
          </Button>
        </p>
      ) : loading ? (
        <p>Loading…</p>
      ) : decisions.length === 0 ? (
        <p>Nothing was decided yet: it is shown here when an agent asks, or a rule answers for you.</p>
      ) : cursor === null ? null : (
        <Button look="outline" onClick={() => load(cursor)}>
          Show older decisions
        </Button>
      )}
      <p>
        <a href={auditAddress({ kind: "decision" })}>All of them in the audit</a>
      </p>
    </section>
  );
}

/** The rule of the gateway itself for what no rule is about. */
const DEFAULT = "default";

function who({ rule, by }: Decision): string {
  if (rule === DEFAULT) return "no rule is about it";
  if (rule !== undefined) return `by the rule “${rule}”`;
  return own(ENDS, by ?? "") ?? `by ${by ?? "a person"}`;
}

async function read(cursor: string): Promise<Page> {
  const answer = await fetchOwn(`/api/policy/decisions?cursor=${encodeURIComponent(cursor)}`).catch(() => {
    throw new Error("The gateway cannot be reached.");
  });
  const said = (await answer.json().catch(() => ({}))) as Page & { error?: string };
  if (!answer.ok) throw new Error(said.error ?? `The gateway answered ${answer.status}.`);
  return said;
}
