import {
  type FocusEvent,
  lazy,
  type Ref,
  Suspense,
  useImperativeHandle,
  useLayoutEffect,
  useMemo,
  useRef,
} from "react";
import type { Entry } from "../bridge/outbox";
import { type Actions, ActionsContext } from "../model/actions";
import { MeContext } from "../model/me";
import { hasOlder, openQuestions } from "../model/chat";
import { type Conversation, type Item, shownItems, type UserItem } from "../model/conversation";
import { Button } from "../ui/Button";
import { Boundary, ElicitationCard, PermissionCard, Timeline } from "../view";
import { matchesMedia } from "../view/media";
import { Composer, type ComposerHandle } from "./Composer";
import { DrawerButton, Header } from "./Header";
import { lacksModel } from "./Options";
import { useChat, usePage } from "./page";
import { goTo, START } from "./route";
import styles from "./SessionPane.module.css";

export interface PaneHandle extends ComposerHandle {
  /** Moves the focus to the oldest open question. */
  question(): void;
}

interface Props {
  sessionId: string;
  openDrawer(): void;
  handle: Ref<PaneHandle>;
}

const Examples = lazy(() => import("./Examples").then((module) => ({ default: module.Examples })));
const PlanPanel = lazy(() => import("../view/PlanPanel").then((module) => ({ default: module.PlanPanel })));

/** Trying again does not bring it back. */
const GONE = new Set(["session_deleted", "unknown_session"]);

/** One session: give it the session's id as key. */
export function SessionPane({ sessionId, openDrawer, handle }: Props) {
  const chat = useChat();
  const listed = usePage((state) => state.sessions?.get(sessionId));
  const lastSeen = useRef(listed);
  if (listed !== undefined) lastSeen.current = listed;
  const session = lastSeen.current; // one that was deleted elsewhere can still be read
  const conversation = usePage((state) => state.conversations.get(sessionId));
  const hello = usePage((state) => state.hello);
  const me = useMemo(() => (hello === null ? null : { name: hello.identity, role: hello.role }), [hello]);
  const trouble = usePage((state) => state.trouble.get(sessionId));
  const loadingOlder = usePage((state) => state.loadingOlder.has(sessionId));
  const composer = useRef<ComposerHandle>(null);
  useImperativeHandle(
    handle,
    () => ({
      focus: () => composer.current?.focus(),
      add: (text) => composer.current?.add(text),
      question: () => document.querySelector<HTMLElement>("[data-question]")?.focus(),
    }),
    [],
  );
  const isThere = conversation !== undefined && session !== undefined;
  useLayoutEffect(() => {
    // It came later than its pane, which then had no composer to put the focus into.
    if (isThere && document.activeElement === document.body && matchesMedia("(pointer: fine)"))
      composer.current?.focus();
  }, [isThere]);
  const items = useItems(sessionId, conversation);
  const actions = useSessionActions(sessionId, composer);

  if (conversation === undefined || session === undefined) {
    if (trouble !== undefined) return <CannotOpen sessionId={sessionId} trouble={trouble} openDrawer={openDrawer} />;
    return (
      <main className={styles.pane} aria-busy="true">
        <div className={styles.top}>
          <DrawerButton open={openDrawer} />
        </div>
      </main>
    );
  }
  const questions = openQuestions(conversation);
  return (
    <ActionsContext value={actions}>
      <MeContext value={me}>
        <main className={styles.pane}>
          <Boundary what="The session's title" of={conversation.usage}>
            <Header session={session} usage={conversation.usage} openDrawer={openDrawer} />
          </Boundary>
          {trouble === undefined ? null : (
            <div className={styles.trouble} role="alert">
              {trouble.message} {trouble.hint}{" "}
              {GONE.has(trouble.code) ? null : (
                <Button look="outline" onClick={() => chat.reopen(sessionId)}>
                  Try again
                </Button>
              )}{" "}
              <Button look="outline" onClick={() => goTo(START)}>
                New session
              </Button>
            </div>
          )}
          <div className={styles.body}>
            <div className={styles.timeline}>
              <Timeline
                sessionId={sessionId}
                items={items}
                terminals={conversation.terminals}
                working={conversation.working}
                turnStartedAt={conversation.turnStartedAt}
                caughtUp={conversation.caughtUp}
                hasOlder={hasOlder(conversation)}
                loadingOlder={loadingOlder}
                cwd={session.cwd}
              />
              {items.length === 0 && conversation.caughtUp ? (
                <Empty
                  agent={session.agent}
                  cwd={session.cwd}
                  examples={lacksModel(conversation)}
                  pick={(text) => composer.current?.add(text)}
                />
              ) : null}
            </div>
            <div className={styles.bottom}>
              {conversation.plan.length > 0 ? (
                <aside className={styles.plan} aria-label="Plan" data-done={isDone(conversation) || undefined}>
                  <Boundary what="The plan" of={conversation.plan}>
                    <Suspense>
                      <PlanPanel entries={conversation.plan} />
                    </Suspense>
                  </Boundary>
                </aside>
              ) : null}
              <Questions questions={questions} cwd={session.cwd} composer={composer} />
              <Boundary what="The message field" of={conversation.commands}>
                <Composer conversation={conversation} cwd={session.cwd} handle={composer} />
              </Boundary>
            </div>
          </div>
          <Announcer conversation={conversation} waiting={questions.length} />
        </main>
      </MeContext>
    </ActionsContext>
  );
}

function isDone({ plan, working }: Conversation): boolean {
  return !working && plan.every((entry) => entry.status === "completed");
}

function Empty({
  agent,
  cwd,
  examples,
  pick,
}: {
  agent: string;
  cwd: string;
  examples: boolean;
  pick(text: string): void;
}) {
  return (
    <div className={styles.empty}>
      <b>{agent} is ready</b>
      <span>It works in {cwd}</span>
      <Suspense>{examples ? <Examples pick={pick} /> : null}</Suspense>
    </div>
  );
}

/**
 * Over the composer, whatever the timeline shows: what waits for an answer cannot be missed. It never takes the focus by
 * itself: the next key belongs to whatever is being written. When the question that had the focus is over, the composer
 * gets it back.
 */
function Questions({
  questions,
  cwd,
  composer,
}: {
  questions: ReturnType<typeof openQuestions>;
  cwd: string;
  composer: { current: ComposerHandle | null };
}) {
  const focused = useRef<HTMLElement | null>(null);
  useLayoutEffect(() => {
    if (focused.current === null || focused.current.isConnected) return;
    focused.current = null;
    if (document.activeElement === document.body) composer.current?.focus();
  }, [questions, composer]);
  if (questions.length === 0) return null;
  const onFocus = (event: FocusEvent) => {
    focused.current = (event.target as HTMLElement).closest("[data-question]");
  };
  return (
    <div className={styles.questions} role="region" aria-label="Waiting for you" onFocus={onFocus}>
      {questions.map((item, index) => (
        <Boundary key={item.key} what="This question" of={item}>
          {item.kind === "permission" ? (
            <PermissionCard item={item} oldest={index === 0} cwd={cwd} />
          ) : (
            <ElicitationCard item={item} />
          )}
        </Boundary>
      ))}
    </div>
  );
}

const NO_ITEMS: readonly Item[] = [];

/** The conversation, and after it what this page has sent and the gateway has not put into it yet. */
function useItems(sessionId: string, conversation: Conversation | undefined): readonly Item[] {
  const unsent = usePage((state) => state.unsent);
  const own = useMemo(() => unsent.flatMap((entry) => userItem(sessionId, entry)), [unsent, sessionId]);
  const { items = NO_ITEMS, undone = null } = conversation ?? {};
  return useMemo(() => {
    const shown = shownItems({ items, undone });
    return own.length === 0 ? shown : [...shown, ...own];
  }, [items, undone, own]);
}

const STATES = { waiting: "offline", sent: "sending", accepted: "sending", failed: "failed" } as const;

function userItem(sessionId: string, { command, at, state, error }: Entry): UserItem[] {
  if (command.type !== "send_message" || command.sessionId !== sessionId) return [];
  const content =
    typeof command.content === "string" ? [{ type: "text" as const, text: command.content }] : command.content;
  const id = command.clientMessageId;
  return [
    { kind: "user", key: `o${id}`, seq: Infinity, at, content, clientMessageId: id, state: STATES[state], error },
  ];
}

function useSessionActions(sessionId: string, composer: { current: ComposerHandle | null }): Actions {
  const chat = useChat();
  return useMemo(
    () => ({
      answerPermission: (requestId, optionId, remember) =>
        chat.answerPermission(sessionId, requestId, optionId, remember),
      answerElicitation: (requestId, action, content) => chat.answerElicitation(sessionId, requestId, action, content),
      retryMessage: (id) => chat.client.resend(id),
      dropMessage: (id) => chat.client.discard(id),
      compose: (text) => composer.current?.add(text),
      cancelTurn: () => chat.cancel(sessionId),
      loadOlder: () => chat.loadOlder(sessionId),
      editQueued: (id, content) => chat.editQueued(sessionId, id, content),
      dropQueued: (id) => chat.dropQueued(sessionId, id),
    }),
    [chat, sessionId, composer],
  );
}

/** Says what changed, not what is written: a screen reader that read every chunk would be of no use. */
function Announcer({ conversation, waiting }: { conversation: Conversation; waiting: number }) {
  const words =
    waiting > 0
      ? "The agent waits for your answer."
      : conversation.working
        ? "The agent works."
        : "The agent is ready.";
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {words}
    </div>
  );
}

function CannotOpen({
  sessionId,
  trouble,
  openDrawer,
}: {
  sessionId: string;
  trouble: { message: string; hint?: string };
  openDrawer(): void;
}) {
  const chat = useChat();
  return (
    <main className={styles.pane}>
      <div className={styles.top}>
        <DrawerButton open={openDrawer} />
      </div>
      <div className={styles.quiet}>
        <h2>This session cannot be opened</h2>
        <p>
          {trouble.message} {trouble.hint}
        </p>
        <Button look="outline" onClick={() => chat.reopen(sessionId)}>
          Try again
        </Button>{" "}
        <Button onClick={() => goTo(START)}>New session</Button>
      </div>
    </main>
  );
}
