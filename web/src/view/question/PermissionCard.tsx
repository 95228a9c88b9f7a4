import { type KeyboardEvent, lazy, memo, Suspense, useId, useMemo, useRef } from "react";
import { useActions } from "../../model/actions";
import type { PermissionItem } from "../../model/conversation";
import { notMine, useMe } from "../../model/me";
import { Icon, Spinner, ToolIcon } from "../icons";
import { commandOf } from "../tool/input";
import { plainTitle, Title } from "../tool/Title";
import { choices, chosen, type Choice } from "./keys";
import { PermissionAnswer } from "./PermissionAnswer";
import { Subject } from "./Subject";
import styles from "./Question.module.css";

// Loaded with the first question, and no part of the first load: the answers do not wait for them.
const Facts = lazy(() => import("./Facts").then((module) => ({ default: module.Facts })));
const ApprovalState = lazy(() => import("./ApprovalState").then((module) => ({ default: module.ApprovalState })));
const Remember = lazy(() => import("./Remember").then((module) => ({ default: module.Remember })));

interface Props {
  item: PermissionItem;
  /** Alt+Q moves the focus here. */
  oldest?: boolean;
  cwd?: string;
}

/** For so long after a question appears no key answers it: those were meant for something else. */
const GRACE_MS = 500;

/** A question that the agent cannot go on without: all that it is about, and the answers. */
export const PermissionCard = memo(function PermissionCard({ item, oldest = false, cwd }: Props) {
  if (item.answer !== null) return <PermissionAnswer item={item} cwd={cwd} />;
  return <Open item={item} oldest={oldest} cwd={cwd} />;
});

function Open({ item, oldest, cwd }: Required<Pick<Props, "item" | "oldest">> & { cwd: string | undefined }) {
  const id = useId();
  const actions = useActions();
  const all = useMemo(() => choices(item.options), [item.options]);
  const barred = notMine(useMe(), item.approval);
  const sending = item.sending !== null || barred !== null;
  const answer = (choice: Choice) => actions.answerPermission(item.requestId, choice.option.optionId);
  const shown = useRef({ requestId: "", at: 0 });
  if (shown.current.requestId !== item.requestId) shown.current = { requestId: item.requestId, at: performance.now() };
  const tooSoon = () => performance.now() - shown.current.at < GRACE_MS;
  const onKeyDown = (event: KeyboardEvent) => {
    if (sending || event.defaultPrevented || event.repeat || event.nativeEvent.isComposing) return;
    if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return;
    const presses = (event.key === "Enter" || event.key === " ") && event.target instanceof HTMLButtonElement;
    const choice = chosen(all, event.key);
    if (choice === undefined && !presses) return;
    if (choice !== undefined || tooSoon()) event.preventDefault();
    if (choice !== undefined && !tooSoon()) answer(choice);
  };
  const once = all.find((choice) => choice.option.optionId === "dragoman:once");
  const title = headline(item);
  return (
    <section
      className={styles.card}
      role="alertdialog"
      aria-modal="false"
      aria-labelledby={`${id}t`}
      aria-describedby={`${id}s`}
      tabIndex={-1}
      data-question={item.requestId}
      onKeyDown={onKeyDown}
    >
      <div className={styles.head}>
        <span className={styles.mark}>
          <Icon name="shield" />
        </span>
        <div className={styles.heading}>
          <span className={styles.kicker}>
            The agent asks for permission
            {oldest ? <kbd className={styles.reach}>Alt+Q</kbd> : null}
          </span>
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
        <Suspense>
          {item.facts === null ? null : <Facts facts={item.facts} cwd={cwd} told={item.approval !== null} />}
          {item.approval === null ? null : <ApprovalState approval={item.approval} />}
          {item.remember === null || barred !== null || once === undefined ? null : (
            <Remember
              name={item.requestId}
              remember={item.remember}
              disabled={sending}
              onAllow={(wish) => actions.answerPermission(item.requestId, once.option.optionId, wish)}
            />
          )}
        </Suspense>
      </div>
      {barred === null ? null : <p className={styles.barred}>{barred}</p>}
      <div className={styles.options} hidden={barred !== null}>
        {all.map((choice) => (
          <button
            key={choice.option.optionId}
            type="button"
            className={styles.option}
            data-tone={choice.tone}
            disabled={sending}
            aria-keyshortcuts={choice.key === "" ? undefined : choice.key}
            onClick={() => answer(choice)}
          >
            {item.sending === choice.option.optionId ? <Spinner /> : null}
            <span>
              <Title text={choice.option.name} />
            </span>
            {choice.key !== "" ? <kbd className={styles.key}>{choice.key.toUpperCase()}</kbd> : null}
          </button>
        ))}
        {all.length === 0 ? (
          <button
            type="button"
            className={styles.option}
            data-tone="reject"
            onClick={() => actions.answerPermission(item.requestId, null)}
          >
            Dismiss
          </button>
        ) : null}
      </div>
      <p className="visually-hidden" role="alert">
        The agent asks for permission: {plainTitle(title)}.{" "}
        {oldest
          ? `Alt+Q goes there. ${all.map(({ key, option }) => (key === "" ? plainTitle(option.name) : `${key}: ${plainTitle(option.name)}`)).join(", ")}`
          : ""}
      </p>
    </section>
  );
}

/** Letters that are typed into a field are no answers. */
function isField(target: EventTarget): boolean {
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Many agents give a command as its own title; it stands in full under it anyway. */
function headline({ toolCall }: PermissionItem): string {
  const title = toolCall.title ?? "Use a tool";
  return title.replaceAll("`", "").trim() === commandOf(toolCall.rawInput)?.trim() ? "Run this command" : title;
}
