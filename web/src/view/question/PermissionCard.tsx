import { memo, useEffect, useId, useMemo, useRef } from "react";
import { useActions } from "../../model/actions";
import type { PermissionItem } from "../../model/conversation";
import { Icon, Spinner, ToolIcon } from "../icons";
import { commandOf } from "../tool/input";
import { Title } from "../tool/Title";
import { choices, chosen, type Choice, isTyping } from "./keys";
import { PermissionAnswer } from "./PermissionAnswer";
import { Subject } from "./Subject";
import styles from "./Question.module.css";

interface Props {
  item: PermissionItem;
  /** Keys answer this one. Only one of several open questions has them. */
  focused?: boolean;
  cwd?: string;
}

/** Keys do nothing for a moment after a question appears: they were meant for something else. */
const GRACE = 400;

/** A question that the agent cannot go on without: all that it is about, and the answers. */
export const PermissionCard = memo(function PermissionCard({ item, focused = false, cwd }: Props) {
  if (item.answer !== null) return <PermissionAnswer item={item} cwd={cwd} />;
  return <Open item={item} focused={focused} cwd={cwd} />;
});

function Open({ item, focused, cwd }: Required<Pick<Props, "item" | "focused">> & { cwd: string | undefined }) {
  const id = useId();
  const actions = useActions();
  const all = useMemo(() => choices(item.options), [item.options]);
  const sending = item.sending !== null;
  const answer = (choice: Choice) => actions.answerPermission(item.requestId, choice.option.optionId);
  useKeys(focused && !sending, item.requestId, all, answer);
  const title = headline(item);
  return (
    <section className={styles.card} role="alertdialog" aria-modal="false" aria-labelledby={`${id}t`} aria-describedby={`${id}s`}>
      <div className={styles.head}>
        <span className={styles.mark}>
          <Icon name="shield" />
        </span>
        <div className={styles.heading}>
          <span className={styles.kicker}>The agent asks for permission</span>
          <h2 className={styles.title} id={`${id}t`}>
            <ToolIcon kind={item.toolCall.kind ?? "other"} />
            <span>
              <Title text={title} cwd={cwd} />
            </span>
          </h2>
        </div>
      </div>
      <div className={styles.subject} id={`${id}s`}>
        <Subject toolCall={item.toolCall} cwd={cwd} />
      </div>
      <div className={styles.options}>
        {all.map((choice) => (
          <button
            key={choice.option.optionId}
            type="button"
            className={styles.option}
            data-tone={choice.tone}
            disabled={sending}
            aria-keyshortcuts={focused ? [choice.key, choice.digit].filter(Boolean).join(" ") : undefined}
            onClick={() => answer(choice)}
          >
            {item.sending === choice.option.optionId ? <Spinner /> : null}
            <span>{choice.option.name}</span>
            {focused && choice.key !== "" ? <kbd className={styles.key}>{choice.key.toUpperCase()}</kbd> : null}
          </button>
        ))}
        {all.length === 0 ? (
          <button type="button" className={styles.option} data-tone="reject" onClick={() => actions.answerPermission(item.requestId, null)}>
            Dismiss
          </button>
        ) : null}
      </div>
      <p className="visually-hidden" role="alert">
        The agent asks for permission: {title}. {focused ? all.map((choice) => `${choice.key}: ${choice.option.name}`).join(", ") : ""}
      </p>
    </section>
  );
}

/** Many agents give a command as its own title; it stands in full under it anyway. */
function headline({ toolCall }: PermissionItem): string {
  const title = toolCall.title ?? "Use a tool";
  return title.replaceAll("`", "").trim() === commandOf(toolCall.rawInput)?.trim() ? "Run this command" : title;
}

function useKeys(active: boolean, requestId: string, all: readonly Choice[], answer: (choice: Choice) => void): void {
  const shown = useRef(0);
  const latest = useRef(answer);
  latest.current = answer;
  useEffect(() => {
    shown.current = performance.now();
  }, [requestId]);
  useEffect(() => {
    if (!active) return;
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.repeat || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event.target) || performance.now() - shown.current < GRACE) return;
      const choice = chosen(all, event.key);
      if (choice === undefined) return;
      event.preventDefault();
      latest.current(choice);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [active, all]);
}
