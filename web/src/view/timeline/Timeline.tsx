import { memo, useMemo, useState } from "react";
import { useActions } from "../../model/actions";
import type { Item, Terminal } from "../../model/conversation";
import { FoldContext } from "../fold";
import { Icon, Spinner } from "../icons";
import { useNow } from "../time";
import { elapsed, plural } from "../words";
import { useAnnouncement } from "./announce";
import { Boundary } from "../Boundary";
import { ItemView } from "./ItemView";
import { guessHeight } from "./guess";
import { useWindow } from "./window";
import styles from "./Timeline.module.css";

export interface TimelineProps {
  sessionId: string;
  items: readonly Item[];
  terminals: ReadonlyMap<string, Terminal>;
  working: boolean;
  turnStartedAt: number;
  /** Everything that was there when we came has arrived. */
  caughtUp: boolean;
  hasOlder: boolean;
  loadingOlder: boolean;
  cwd?: string;
}

/** The conversation. It opens at its end, follows it while something comes, and draws only what is in sight. */
export function Timeline(props: TimelineProps) {
  const folds = useMemo(() => new Map<string, boolean>(), [props.sessionId]);
  return (
    <FoldContext.Provider value={folds}>
      <List key={props.sessionId} {...props} />
    </FoldContext.Provider>
  );
}

const NO_TERMINALS: ReadonlyMap<string, Terminal> = new Map();

function List({ items, terminals, working, turnStartedAt, caughtUp, hasOlder, loadingOlder, cwd }: TimelineProps) {
  const actions = useActions();
  const [loadOlder] = useState(() => () => actions.loadOlder());
  const keys = useMemo(() => items.map((item) => item.key), [items]);
  const view = useWindow({
    keys,
    guess: (index) => guessHeight(items[index] as Item),
    own: newestOwn(items),
    needOlder: hasOlder && caughtUp && !loadingOlder ? loadOlder : null,
  });
  const said = useAnnouncement(items, caughtUp);
  return (
    <div className={styles.frame}>
      <div
        className={styles.scroller}
        ref={view.scroller}
        role="feed"
        aria-label="Conversation"
        aria-busy={loadingOlder || !caughtUp}
        tabIndex={0}
        onClickCapture={view.clicked}
      >
        <div style={{ height: view.before }} />
        {items.slice(view.start, view.end).map((item, index) => (
          <Row
            key={item.key}
            item={item}
            place={view.start + index + 1}
            observe={view.observe}
            terminals={
              item.kind === "tool" && item.content.some((part) => part.type === "terminal") ? terminals : NO_TERMINALS
            }
            cwd={cwd}
          />
        ))}
        <div style={{ height: view.after }} />
        <div className={styles.foot}>
          {working ? <Working since={turnStartedAt} waiting={isWaiting(items)} /> : null}
        </div>
      </div>
      {loadingOlder ? (
        <p className={styles.older}>
          <Spinner /> Older messages
        </p>
      ) : null}
      {!caughtUp && items.length === 0 ? <Waiting /> : null}
      {view.away ? (
        <button type="button" className={styles.jump} onClick={view.jump}>
          <Icon name="latest" />
          {view.unseen > 0 ? `${plural(view.unseen, "new item")}` : "Latest"}
          <span className="visually-hidden">, go to the latest</span>
        </button>
      ) : null}
      <div className="visually-hidden" aria-live="polite">
        {said}
      </div>
    </div>
  );
}

interface RowProps {
  item: Item;
  place: number;
  observe: (key: string, element: HTMLElement | null) => void;
  terminals: ReadonlyMap<string, Terminal>;
  cwd: string | undefined;
}

const Row = memo(function Row({ item, place, observe, terminals, cwd }: RowProps) {
  const ref = useMemo(() => (element: HTMLElement | null) => observe(item.key, element), [item.key, observe]);
  return (
    <article
      ref={ref}
      className={styles.row}
      data-kind={item.kind}
      aria-posinset={place}
      aria-setsize={-1}
      aria-label={LABELS[item.kind]}
    >
      <Boundary what="This item" of={item}>
        <ItemView item={item} terminals={terminals} cwd={cwd} />
      </Boundary>
    </article>
  );
});

const LABELS: Record<Item["kind"], string> = {
  user: "You",
  agent: "Agent",
  thought: "Thought",
  tool: "Tool call",
  permission: "Permission",
  elicitation: "Question",
  notice: "Notice",
  marker: "Change",
  turn_end: "End of turn",
  unknown: "Unknown event",
};

/** What was sent and is not in the journal yet stands at the end. */
function newestOwn(items: readonly Item[]): string | null {
  const last = items.at(-1);
  return last?.kind === "user" && last.seq === Infinity ? last.key : null;
}

/** Questions are asked at the end; one that is further up was left behind by its turn. */
const RECENT = 200;

function isWaiting(items: readonly Item[]): boolean {
  return items
    .slice(-RECENT)
    .some((item) => (item.kind === "permission" || item.kind === "elicitation") && item.answer === null);
}

function Working({ since, waiting }: { since: number; waiting: boolean }) {
  const now = useNow(!waiting);
  if (waiting) {
    return (
      <p className={styles.working} data-waiting="true">
        <Icon name="shield" />
        Waiting for you
      </p>
    );
  }
  return (
    <p className={styles.working}>
      <Spinner />
      Working{since > 0 && now - since > 2000 ? <span className={styles.since}>{elapsed(now - since)}</span> : null}
    </p>
  );
}

function Waiting() {
  return (
    <div className={styles.waiting} aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  );
}
