import { useMemo, useState } from "react";
import { type Actions, ActionsContext } from "../src/model/actions";
import type { Conversation, ElicitationItem, PermissionItem } from "../src/model/conversation";
import { ElicitationCard, PermissionCard, Timeline } from "../src/view";
import { PlanPanel } from "../src/view/PlanPanel";
import styles from "./Page.module.css";

interface Props {
  conversation: Conversation;
  hasOlder: boolean;
  /** Receives what the components asked for. */
  asked: unknown[][];
  loadOlder: () => void;
}

/** What the app does around the components, in little. */
export function Page({ conversation, hasOlder, asked, loadOlder }: Props) {
  const [, redraw] = useState(0);
  const actions = useMemo(() => {
    const record =
      (name: string) =>
      (...values: unknown[]) => {
        asked.push([name, ...values]);
        redraw((count) => count + 1);
      };
    return {
      answerPermission: record("answerPermission"),
      answerElicitation: record("answerElicitation"),
      retryMessage: record("retryMessage"),
      dropMessage: record("dropMessage"),
      compose: record("compose"),
      cancelTurn: record("cancelTurn"),
      editQueued: record("editQueued"),
      dropQueued: record("dropQueued"),
      loadOlder,
    } satisfies Actions;
  }, [asked, loadOlder]);
  const open = conversation.items.filter(
    (item): item is PermissionItem | ElicitationItem =>
      (item.kind === "permission" || item.kind === "elicitation") && item.answer === null,
  );
  return (
    <ActionsContext value={actions}>
      <main className={styles.page}>
        <h1 className="visually-hidden">Conversation</h1>
        <div className={styles.timeline}>
          <Timeline
            sessionId={conversation.sessionId}
            items={conversation.items}
            terminals={conversation.terminals}
            working={conversation.working}
            turnStartedAt={0}
            caughtUp={conversation.caughtUp}
            hasOlder={hasOlder}
            loadingOlder={false}
            cwd="/home/ada/project"
          />
        </div>
        <div className={styles.dock}>
          <PlanPanel entries={conversation.plan} />
          {open.map((item, index) =>
            item.kind === "permission" ? (
              <PermissionCard key={item.key} item={item} oldest={index === 0} cwd="/home/ada/project" />
            ) : (
              <ElicitationCard key={item.key} item={item} />
            ),
          )}
          <textarea className={styles.composer} aria-label="Message" rows={2} placeholder="Message" />
        </div>
      </main>
    </ActionsContext>
  );
}
