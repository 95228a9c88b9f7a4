import { lazy, memo, Suspense } from "react";
import type { ElicitationItem } from "../../model/conversation";
import { Icon } from "../icons";
import { whoAnswered } from "./PermissionAnswer";
import styles from "./Question.module.css";

// Few agents ask so, and seldom.
const Elicitation = lazy(() => import("./Elicitation").then((module) => ({ default: module.Elicitation })));

/** Something that the agent wants to know, or what became of it. */
export const ElicitationCard = memo(function ElicitationCard({ item }: { item: ElicitationItem }) {
  if (item.answer !== null) return <ElicitationAnswer item={item} />;
  return (
    <Suspense fallback={<ElicitationAnswer item={item} />}>
      <Elicitation item={item} />
    </Suspense>
  );
});

const VERDICTS = { accept: "Answered", decline: "Declined", cancel: "Dismissed" };

export function ElicitationAnswer({ item }: { item: ElicitationItem }) {
  const words = item.answer === null ? "Waits for an answer" : VERDICTS[item.answer.action];
  return (
    <div
      role="group"
      className={styles.answer}
      data-tone={item.answer === null ? "warn" : "faint"}
      aria-label={`Question: ${words}`}
    >
      <Icon name="question" />
      <span className={styles.verdict}>{words}</span>
      <span className={styles.about}>{item.message}</span>
      {item.answer === null ? null : <span className={styles.by}>{whoAnswered(item)}</span>}
    </div>
  );
}
