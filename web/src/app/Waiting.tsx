import type { ReactNode } from "react";
import { liveOf, titleOf } from "../model/sessions";
import { ago } from "./clock";
import { usePage } from "./page";
import { sessionAddress } from "./route";
import { StateDot } from "./StateDot";
import styles from "./Waiting.module.css";

/** Where those begin who may begin no session: what waits for an answer. */
export default function Waiting({ drawer }: { drawer: ReactNode }) {
  const sessions = usePage((state) => state.sessions);
  const approver = usePage(({ hello }) => hello?.role === "approve");
  const waiting = [...(sessions?.values() ?? [])].filter((session) => liveOf(session) === "waiting");
  return (
    <main className={styles.page} aria-busy={sessions === null}>
      <div className={styles.top}>{drawer}</div>
      <div className={styles.content}>
        <h1>{approver ? "What waits for an answer" : "Sessions"}</h1>
        <p>
          {approver
            ? "With your token you may read sessions and answer their questions."
            : "With your token you may read sessions: choose one from the list."}
        </p>
        {sessions !== null && waiting.length === 0 ? <p role="status">Nothing waits now.</p> : null}
        <ul aria-label="Waiting sessions">
          {waiting.map((session) => (
            <li key={session.sessionId}>
              <a href={sessionAddress(session.sessionId)}>
                <StateDot live="waiting" /> <b>{titleOf(session)}</b>
                <small>
                  {waits(session.questions)}, {ago(session.updatedAt)} · {session.agent} · {session.cwd}
                </small>
              </a>
            </li>
          ))}
        </ul>
      </div>
    </main>
  );
}

function waits(questions: number): string {
  return questions > 1 ? `${questions} questions` : "1 question";
}
