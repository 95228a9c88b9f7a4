import { lazy, Suspense, useState } from "react";
import type { SessionSummary } from "../bridge/events";
import type { Usage } from "../model/conversation";
import { folderName, LIVE_WORDS, liveOf, titleOf } from "../model/sessions";
import { IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import styles from "./Header.module.css";
import { usePage } from "./page";
import { Rename, useSessionMenu } from "./Sidebar";
import { StateDot } from "./StateDot";

export function DrawerButton({ open }: { open(): void }) {
  return <IconButton icon="menu" label="Sessions" className={styles.drawer ?? ""} onClick={open} />;
}

const SessionDetails = lazy(() => import("./SessionDetails"));

interface Props {
  session: SessionSummary;
  usage: Usage | null;
  openDrawer(): void;
}

export function Header({ session, usage, openDrawer }: Props) {
  const [renaming, setRenaming] = useState(false);
  const entries = useSessionMenu(session, () => setRenaming(true));
  const [details, setDetails] = useState(false);
  const agents = usePage(({ hello }) => hello?.agents);
  const mediation = session.mediation ?? agents?.find(({ name }) => name === session.agent)?.mediation;
  return (
    <header className={styles.header}>
      <DrawerButton open={openDrawer} />
      {renaming ? (
        <Rename session={session} done={() => setRenaming(false)} />
      ) : (
        <div className={styles.names}>
          <h1 className={styles.title} title={titleOf(session)} onDoubleClick={() => setRenaming(true)}>
            {titleOf(session)}
          </h1>
          <span className={styles.place} title={session.cwd}>
            {session.agent} · {folderName(session.cwd)}
          </span>
        </div>
      )}
      <div className={styles.facts}>
        <button
          type="button"
          className={styles.fact}
          data-level={mediation?.level}
          title={mediation?.why}
          aria-label={`Mediation: ${mediation?.level}. About this session`}
          onClick={() => setDetails(true)}
        >
          <Icon name="shield" size={14} /> <span className={styles.optional}>{mediation?.level}</span>
        </button>
        {session.sandbox ? (
          <span className={`${styles.fact} ${styles.optional}`} title="The agent runs in this sandbox">
            <Icon name="box" size={14} /> {session.sandbox}
          </span>
        ) : null}
        {session.clients > 1 ? (
          <span
            className={`${styles.fact} ${styles.optional}`}
            title={`${session.clients} clients look at this session`}
          >
            <Icon name="users" size={14} /> {session.clients}
            <span className="visually-hidden"> clients</span>
          </span>
        ) : null}
        <UsageFacts usage={usage} />
        <span className={styles.fact}>
          <StateDot live={liveOf(session)} />{" "}
          <span className={styles.optional} aria-hidden="true">
            {LIVE_WORDS[liveOf(session)]}
          </span>
        </span>
      </div>
      <Menu label="Session actions" entries={entries}>
        <Icon name="more" />
      </Menu>
      {details ? (
        <Suspense>
          <SessionDetails session={session} mediation={mediation} close={() => setDetails(false)} />
        </Suspense>
      ) : null}
    </header>
  );
}

const ROUND = 2 * Math.PI * 6;

function UsageFacts({ usage }: { usage: Usage | null }) {
  if (usage === null) return null;
  const { used, size, cost } = usage;
  const share = used !== null && size !== null && size > 0 ? Math.min(1, used / size) : null;
  const words =
    share === null
      ? ""
      : `${tokens(used ?? 0)} of ${tokens(size ?? 0)} tokens of context used (${Math.round(share * 100)} %)`;
  return (
    <>
      {cost === null ? null : (
        <span className={`${styles.fact} ${styles.optional}`} title="Cost so far">
          {money(cost)}
        </span>
      )}
      {share === null ? null : (
        <span className={styles.fact} title={words}>
          <svg
            className={styles.ring}
            width="16"
            height="16"
            viewBox="0 0 16 16"
            role="img"
            aria-label={words}
            data-full={share > 0.85 || undefined}
          >
            <circle cx="8" cy="8" r="6" />
            <circle cx="8" cy="8" r="6" transform="rotate(-90 8 8)" strokeDasharray={`${share * ROUND} ${ROUND}`} />
          </svg>
          <span className={styles.optional}>{Math.round(share * 100)} %</span>
        </span>
      )}
    </>
  );
}

function tokens(count: number): string {
  if (count < 1000) return String(count);
  return count < 1_000_000
    ? `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`
    : `${(count / 1_000_000).toFixed(1)}M`;
}

function money({ amount, currency }: { amount: number; currency: string }): string {
  try {
    return new Intl.NumberFormat(undefined, {
      style: "currency",
      currency,
      maximumFractionDigits: amount < 1 ? 3 : 2,
    }).format(amount);
  } catch {
    return `${amount.toFixed(2)} ${currency}`; // not a currency code
  }
}
