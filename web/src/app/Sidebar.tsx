import { memo, type RefObject, useMemo, useState } from "react";
import type { SessionSummary } from "../bridge/events";
import { folderName, type Grouping, grouped, liveOf, matches, titleOf } from "../model/sessions";
import { Button, IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { Menu, type MenuEntry } from "../ui/Menu";
import { useNotifications } from "./attention";
import { ago } from "./clock";
import { keep, kept } from "./kept";
import { download, logOut } from "./login";
import { useChat, usePage, useReadOnly } from "./page";
import { goTo, sessionAddress, START } from "./route";
import styles from "./Sidebar.module.css";
import { StateDot } from "./StateDot";
import { nextTheme, useTheme } from "./theme";

const GROUPING = "dragoman.grouping";

interface Props {
  searchField: RefObject<HTMLInputElement | null>;
  showShortcuts(): void;
}

export function Sidebar({ searchField, showShortcuts }: Props) {
  const chat = useChat();
  const search = usePage((state) => state.search);
  const [grouping, setGrouping] = useState<Grouping>(() =>
    kept("localStorage", GROUPING) === "workspace" ? "workspace" : "day",
  );
  const regroup = () => {
    const next = grouping === "day" ? "workspace" : "day";
    keep("localStorage", GROUPING, next);
    setGrouping(next);
  };
  return (
    <nav className={styles.sidebar} aria-label="Sessions">
      <div className={styles.top}>
        <a className={styles.brand} href={START}>
          Dragoman
        </a>
        <IconButton icon="group" label={grouping === "day" ? "Group by folder" : "Group by day"} onClick={regroup} />
        <IconButton icon="plus" label="New session (Alt+N)" onClick={() => goTo(START)} />
      </div>
      <label className={styles.search}>
        <Icon name="search" size={14} />
        <span className="visually-hidden">Search sessions</span>
        <input
          ref={searchField}
          type="search"
          value={search}
          placeholder="Search"
          onChange={(event) => chat.search(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") chat.search("");
          }}
        />
      </label>
      <Sessions grouping={grouping} />
      <Foot showShortcuts={showShortcuts} />
    </nav>
  );
}

function Sessions({ grouping }: { grouping: Grouping }) {
  const chat = useChat();
  const sessions = usePage((state) => state.sessions);
  const found = usePage((state) => state.found);
  const leaving = usePage((state) => state.leaving);
  const search = usePage((state) => state.search).trim();
  const nextCursor = usePage((state) => state.nextCursor);
  const current = usePage((state) => state.current);
  const groups = useMemo(() => {
    const all = new Map([...found.map((session) => [session.sessionId, session] as const), ...(sessions ?? [])]);
    const hits = new Set(found.map((session) => session.sessionId));
    const shown = [...all.values()].filter(
      (session) =>
        !leaving.has(session.sessionId) && (search === "" || hits.has(session.sessionId) || matches(session, search)),
    );
    return grouped(shown, grouping);
  }, [sessions, found, leaving, search, grouping]);

  if (sessions === null) return <div className={styles.list} aria-busy="true" />;
  return (
    <div className={styles.list}>
      {groups.length === 0 ? (
        <div className={styles.quiet}>{search === "" ? "No sessions yet." : "Nothing found."}</div>
      ) : null}
      {groups.map((group) => (
        <section key={group.hint || group.name} aria-label={group.name}>
          <div className={styles.group} title={group.hint}>
            {group.name}
          </div>
          <ul className={styles.rows}>
            {group.sessions.map((session) => (
              <Row
                key={session.sessionId}
                session={session}
                current={session.sessionId === current}
                folder={grouping === "day"}
              />
            ))}
          </ul>
        </section>
      ))}
      {nextCursor !== null && search === "" ? (
        <Button onClick={() => chat.listOlder(nextCursor)}>Show older sessions</Button>
      ) : null}
    </div>
  );
}

const Row = memo(function Row({
  session,
  current,
  folder,
}: {
  session: SessionSummary;
  current: boolean;
  folder: boolean;
}) {
  const [renaming, setRenaming] = useState(false);
  const live = liveOf(session);
  const entries = useSessionMenu(session, () => setRenaming(true));
  if (renaming)
    return (
      <li className={styles.row}>
        <Rename session={session} done={() => setRenaming(false)} />
      </li>
    );
  return (
    <li className={styles.row} data-current={current || undefined} data-live={live}>
      <a className={styles.link} href={sessionAddress(session.sessionId)} aria-current={current ? "page" : undefined}>
        <StateDot live={live} />
        <span className={styles.title}>{titleOf(session)}</span>
        <time className={styles.time} dateTime={session.updatedAt}>
          {ago(session.updatedAt)}
        </time>
        <span className={styles.meta}>
          {live === "waiting" ? <span className={styles.waitingWord}>Waiting for you · </span> : null}
          {live === "failed" ? <span className={styles.failedWord}>Failed · </span> : null}
          {session.agent}
          {folder ? ` · ${folderName(session.workspace ?? session.cwd)}` : ""}
        </span>
      </a>
      <Menu label={`Actions for ${titleOf(session)}`} entries={entries} className={styles.more ?? ""}>
        <Icon name="more" />
      </Menu>
    </li>
  );
});

/** What can be done with a session, in the list and in the header. */
export function useSessionMenu(session: SessionSummary, rename: () => void): MenuEntry[] {
  const chat = useChat();
  const current = usePage((state) => state.current);
  const observer = useReadOnly();
  const { sessionId } = session;
  const name = titleOf(session)
    .replace(/[^\w.-]+/g, "-")
    .slice(0, 60);
  const exporting = (format: string) => () => {
    download(`/api/sessions/${encodeURIComponent(sessionId)}/export?format=${format}`, `${name}.${format}`).catch(
      (error: Error) => chat.toast(`The session was not exported. ${error.message}`, "error"),
    );
  };
  const remove = () => {
    chat.remove(sessionId);
    if (current === sessionId) goTo(START);
  };
  return [
    { label: "Rename", icon: "edit", run: rename, disabled: observer },
    { label: "Export as Markdown", icon: "download", run: exporting("md") },
    { label: "Export as NDJSON", icon: "download", run: exporting("ndjson") },
    "separator",
    {
      label: "Close",
      icon: "power",
      run: () => chat.close(sessionId),
      disabled: observer || session.state === "closed",
    },
    { label: "Delete", icon: "trash", run: remove, danger: true, disabled: observer },
  ];
}

export function Rename({ session, done }: { session: SessionSummary; done(): void }) {
  const chat = useChat();
  const [title, setTitle] = useState(session.title ?? "");
  const save = () => {
    if (title.trim() !== "" && title.trim() !== session.title) chat.rename(session.sessionId, title.trim());
    done();
  };
  return (
    <input
      className={styles.rename}
      aria-label="Session title"
      value={title}
      autoFocus
      onFocus={(event) => event.target.select()}
      onChange={(event) => setTitle(event.target.value)}
      onBlur={save}
      onKeyDown={(event) => {
        if (event.key === "Enter") save();
        if (event.key === "Escape") done();
        event.stopPropagation();
      }}
    />
  );
}

const THEME_ICONS = { system: "system", light: "sun", dark: "moon" } as const;

function Foot({ showShortcuts }: Pick<Props, "showShortcuts">) {
  const chat = useChat();
  const version = usePage((state) => state.hello?.version ?? "");
  const leave = () => {
    logOut().catch((error: Error) => chat.toast(`You are still logged in. ${error.message}`, "error"));
  };
  const notifications = useNotifications();
  const theme = useTheme();
  return (
    <div className={styles.foot}>
      <span className={styles.version}>{version}</span>
      <IconButton icon="shield" label="Policy: rules and decisions" onClick={() => goTo("#/policy")} />
      <IconButton icon="file" label="Audit: what agents did" onClick={() => goTo("#/audit")} />
      {notifications === null ? null : (
        <IconButton
          icon={notifications.on ? "bell" : "bellOff"}
          aria-pressed={notifications.on}
          label="Notify me when a session waits"
          onClick={() => void notifications.toggle()}
        />
      )}
      <IconButton icon={THEME_ICONS[theme]} label={`Colours: ${theme}`} onClick={nextTheme} />
      <IconButton icon="keyboard" label="Keyboard shortcuts (?)" onClick={showShortcuts} />
      <IconButton icon="leave" label="Log out" onClick={leave} />
    </div>
  );
}
