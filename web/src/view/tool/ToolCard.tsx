import { memo, useId, useMemo } from "react";
import type { Terminal as TerminalState, ToolItem } from "../../model/conversation";
import { Changes } from "../diff";
import { useFold } from "../fold";
import { Icon, Spinner, ToolIcon } from "../icons";
import { useNow } from "../time";
import { duration, elapsed, plural } from "../words";
import { peek } from "./peek";
import { Title } from "./Title";
import { ToolBody } from "./ToolBody";
import styles from "./ToolCard.module.css";

interface Props {
  item: ToolItem;
  terminals: ReadonlyMap<string, TerminalState>;
  cwd?: string;
}

/** One tool call: a line that says what and how it goes, and under it what it was given and what came out. */
export const ToolCard = memo(function ToolCard({ item, terminals, cwd }: Props) {
  const body = useId();
  const [open, setOpen] = useFold(item.key, opensByItself(item));
  const state = stateOf(item);
  return (
    <div
      role="group"
      className={styles.card}
      data-state={state}
      aria-label={`Tool call: ${item.title}, ${WORDS[state]}`}
    >
      <button
        type="button"
        className={styles.head}
        aria-expanded={open}
        aria-controls={open ? body : undefined}
        onClick={() => setOpen(!open)}
      >
        <span className={styles.kind}>
          <ToolIcon kind={item.toolKind} />
        </span>
        <span className={styles.title}>
          <Title text={item.title} cwd={cwd} />
        </span>
        {item.rule === undefined ? null : <span className={styles.took}>{`rule “${item.rule}”`}</span>}
        {open ? null : <Changes content={item.content} />}
        {item.unmediated ? (
          <span className={styles.mark} title="It ran before the rules saw it">
            unmediated
          </span>
        ) : null}
        <Took item={item} />
        <Status state={state} />
        <span className={styles.chevron} data-open={open}>
          <Icon name="chevron" />
        </span>
      </button>
      {open ? (
        <div className={styles.body} id={body}>
          <ToolBody item={item} terminals={terminals} cwd={cwd} />
        </div>
      ) : state === "refused" ? null : (
        <Peek item={item} terminals={terminals} />
      )}
    </div>
  );
});

/** What a command printed last, also while it runs, and what was read or found first: often that is all one wants to know. */
function Peek({ item, terminals }: Props) {
  const { lines, from, more } = useMemo(() => peek(item, terminals), [item, terminals]);
  if (lines.length === 0) return null;
  return (
    <pre role="group" className={styles.peek} aria-label={from === "end" ? "Last lines of the output" : "First lines"}>
      {lines.join("\n")}
      {more === 0 ? null : <span className={styles.more}>{`\n… ${plural(more, "more line")}`}</span>}
    </pre>
  );
}

type State = "pending" | "running" | "asking" | "done" | "failed" | "refused" | "abandoned";

const WORDS: Record<State, string> = {
  pending: "not started",
  running: "running",
  asking: "waits for you",
  done: "done",
  failed: "failed",
  refused: "refused",
  abandoned: "interrupted",
};

function stateOf(item: ToolItem): State {
  if (item.abandoned) return "abandoned";
  if (item.refused && item.status === "failed") return "refused";
  if (item.asking && item.status !== "failed" && item.status !== "completed") return "asking";
  return (
    ({ pending: "pending", in_progress: "running", completed: "done", failed: "failed" } as const)[item.status] ??
    "running"
  );
}

/** What people want to see without a click: changes, terminals, and what went wrong. An open question shows it itself. */
function opensByItself(item: ToolItem): boolean {
  const state = stateOf(item);
  if (state === "asking" || state === "refused") return false;
  if (state === "abandoned") return item.content.length > 0;
  if (item.told) return true;
  if (item.status === "failed") return item.content.length > 0 || item.output !== undefined;
  return item.content.some((part) => part.type !== "content" || part.content.type === "image");
}

function Status({ state }: { state: State }) {
  const icon = {
    pending: <Icon name="pending" />,
    running: <Spinner />,
    asking: <Icon name="shield" />,
    done: <Icon name="check" />,
    failed: <Icon name="cross" />,
    refused: <Icon name="refused" />,
    abandoned: <Icon name="stopped" />,
  }[state];
  return (
    <span className={styles.status} data-state={state} title={WORDS[state]}>
      {icon}
      <span className={state === "done" || state === "running" ? "visually-hidden" : undefined}>{WORDS[state]}</span>
    </span>
  );
}

function Took({ item }: { item: ToolItem }) {
  const running = item.endedAt === 0 && item.status === "in_progress" && !item.abandoned;
  const now = useNow(running);
  if (item.at === 0) return null;
  if (running) return now - item.at < 2000 ? null : <span className={styles.took}>{elapsed(now - item.at)}</span>;
  const took = item.endedAt - item.at;
  return item.endedAt === 0 || took < 100 ? null : <span className={styles.took}>{duration(took)}</span>;
}
