import { useEffect, useState } from "react";
import { Button } from "../../ui/Button";
import { fetchOwn } from "../login";
import styles from "./RememberedAnswers.module.css";

interface Memory {
  readonly id: string;
  readonly decision: string;
  readonly words: string;
  readonly scope: string;
  readonly root: string;
  readonly session: string;
  readonly who: string;
  readonly when: string;
  readonly until: string | null;
}

const PATH = "/api/policy/remembered";

/** What people answered for longer than once, each with a button that revokes it. */
export function RememberedAnswers({ mayForget }: { mayForget: boolean }) {
  const [memories, setMemories] = useState<readonly Memory[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = () => {
    read()
      .then(({ remembered, problem: told }) => {
        setMemories(remembered);
        setProblem(told ?? null);
      })
      .catch((error: Error) => setProblem(error.message));
  };
  useEffect(load, []);
  const forget = (id: string) => {
    revoke(id)
      .then(load)
      .catch((error: Error) => setProblem(error.message));
  };
  return (
    <section aria-label="Remembered answers" className={styles.remembered}>
      {problem === null ? null : (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
      {memories?.length === 0 ? <p className={styles.none}>Nothing is remembered.</p> : null}
      <ul>
        {memories?.map((memory) => (
          <li key={memory.id}>
            <div className={styles.what}>
              <span>
                {memory.decision === "deny" ? "Deny" : "Allow"} {memory.words}
              </span>
              <span className={styles.where}>{described(memory)}</span>
            </div>
            {mayForget ? (
              <Button look="outline" onClick={() => forget(memory.id)} aria-label={`Revoke ${memory.words}`}>
                Revoke
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
    </section>
  );
}

function described({ scope, root, session, who, when, until }: Memory): string {
  const where = scope === "everywhere" ? "everywhere" : scope === "project" ? root : `session ${session}`;
  const end = until === null ? "" : `, until ${moment(until)}`;
  return `${where}${end}, by ${who}, ${moment(when)}`;
}

function moment(stamp: string): string {
  return new Date(stamp).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
}

async function read(): Promise<{ remembered: Memory[]; problem?: string | null }> {
  const answer = await fetchOwn(PATH);
  if (!answer.ok) throw new Error(`The remembered answers cannot be read: ${answer.statusText}.`);
  return (await answer.json()) as { remembered: Memory[]; problem?: string | null };
}

async function revoke(id: string): Promise<void> {
  const answer = await fetchOwn(`${PATH}/${encodeURIComponent(id)}`, { method: "DELETE" });
  if (!answer.ok && answer.status !== 404) throw new Error("It could not be revoked.");
}
