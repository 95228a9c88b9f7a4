import { memo } from "react";
import type { PlanEntry } from "../bridge/events";
import { useFold } from "./fold";
import { Icon } from "./icons";
import { matchesMedia } from "./media";
import styles from "./PlanPanel.module.css";

const WORDS = { pending: "open", in_progress: "in work", completed: "done" } as const;

/** Where it stands beside the conversation (SessionPane.module.css). Above the composer it is one line until the user opens it. */
const BESIDE = "(min-width: 1704px)";

/** What the agent means to do, and how far it is. */
export const PlanPanel = memo(function PlanPanel({ entries }: { entries: readonly PlanEntry[] }) {
  const [open, setOpen] = useFold("plan", matchesMedia(BESIDE));
  if (entries.length === 0) return null;
  const done = entries.filter((entry) => entry.status === "completed").length;
  const current = entries.find((entry) => entry.status === "in_progress");
  return (
    <section className={styles.panel} aria-label="Plan">
      <button type="button" className={styles.head} aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="plan" />
        <span className={styles.name}>Plan</span>
        <span className={styles.current}>{open ? "" : (current?.content ?? "")}</span>
        <span className={styles.count} aria-label={`${done} of ${entries.length} done`} role="img">
          {done}/{entries.length}
        </span>
        <span className={styles.chevron} data-open={open}>
          <Icon name="chevron" />
        </span>
      </button>
      <div
        className={styles.bar}
        role="progressbar"
        aria-label="Plan"
        aria-valuemin={0}
        aria-valuemax={entries.length}
        aria-valuenow={done}
      >
        <div style={{ width: `${(100 * done) / entries.length}%` }} />
      </div>
      {open ? (
        <ol className={styles.list}>
          {entries.map((entry, index) => (
            <li key={index} data-status={entry.status}>
              <span className={styles.mark} aria-hidden="true">
                {entry.status === "completed" ? <Icon name="check" /> : null}
              </span>
              <span className={styles.text}>
                {entry.content}
                <span className="visually-hidden">, {WORDS[entry.status] ?? entry.status}</span>
              </span>
              {entry.priority === "high" && entry.status !== "completed" ? (
                <span className={styles.high}>high</span>
              ) : null}
            </li>
          ))}
        </ol>
      ) : null}
    </section>
  );
});
