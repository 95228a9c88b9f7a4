import { type FormEvent, type KeyboardEvent, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { BridgeError } from "../bridge/client";
import type { AgentSummary, Command } from "../bridge/events";
import { folderName } from "../model/sessions";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { Select } from "../ui/Select";
import { Suggestions, useSuggestions } from "../ui/Suggestions";
import { replaceWord, wantedAt } from "./completion";
import { type Draft, draftOf, EMPTY, keepDraft } from "./drafts";
import { Examples } from "./Examples";
import { FolderField } from "./FolderField";
import { DrawerButton } from "./Header";
import { keep, kept } from "./kept";
import styles from "./NewSession.module.css";
import { matchesMedia } from "../view/media";
import { useChat, usePage } from "./page";
import { goTo, sessionAddress } from "./route";
import { own } from "../model/untrusted";
import { LEVELS } from "./levels";
import { matching } from "./useCompletion";

const LAST_AGENT = "dragoman.agent";
const LAST_FOLDER = "dragoman.folder";
/** The draft of a session that does not exist yet. */
const NEW = "new";
const NO_COMMANDS: readonly Command[] = [];

export default function NewSession({ openDrawer }: { openDrawer(): void }) {
  const chat = useChat();
  const hello = usePage((state) => state.hello);
  const creating = usePage((state) => state.creating);
  const online = usePage((state) => state.status.state === "open");
  const [picked, setPicked] = useState<string | null>(() => kept("localStorage", LAST_AGENT));
  const [folder, setFolder] = useState<string | null>(() => kept("localStorage", LAST_FOLDER));
  const [sandbox, setSandbox] = useState("");
  const [draft, setDraft] = useState<Draft>(() => draftOf(NEW));
  const [error, setError] = useState<BridgeError | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (matchesMedia("(pointer: fine)")) field.current?.focus(); // a phone would open its keyboard
  }, []);

  const agents = hello?.agents ?? [];
  const agent = chosenAgent(agents, picked, hello?.defaultAgent);
  const cwd = folder ?? hello?.folder ?? "";
  const pickFolder = (path: string) => {
    setFolder(path);
    setError(null);
  };
  const change = (text: string) => {
    const next = { ...draft, text };
    keepDraft(NEW, next);
    setDraft(next);
  };

  const start = async (event: FormEvent) => {
    event.preventDefault();
    if (agent === undefined || creating || !online) return;
    setError(null);
    const outcome = await chat.create({ cwd: cwd.trim(), agent: agent.name, ...(sandbox === "" ? {} : { sandbox }) });
    if (outcome instanceof BridgeError) {
      setError(outcome);
      return;
    }
    keep("localStorage", LAST_AGENT, agent.name);
    keep("localStorage", LAST_FOLDER, cwd.trim());
    if (draft.text.trim() !== "") chat.sendMessage(outcome, draft.text.trim());
    keepDraft(NEW, EMPTY);
    goTo(sessionAddress(outcome));
  };

  return (
    <main className={styles.page}>
      <div className={styles.top}>
        <DrawerButton open={openDrawer} />
      </div>
      <form className={styles.form} onSubmit={(event) => void start(event)}>
        <h1 className={styles.heading}>New session</h1>
        <Agents
          agents={agents}
          picked={agent?.name}
          pick={(name) => {
            setPicked(name);
            setError(null);
          }}
        />
        <div className={styles.field}>
          <label className={styles.label} htmlFor="folder">
            Folder
          </label>
          <FolderField id="folder" value={cwd} onChange={pickFolder} />
          <RecentFolders current={cwd} pick={pickFolder} />
        </div>
        <div className={styles.field}>
          <label className={styles.label} htmlFor="first-message">
            First message
          </label>
          <FirstMessage
            field={field}
            value={draft.text}
            commands={agent?.commands ?? NO_COMMANDS}
            onChange={change}
            send={(event) => void start(event)}
          />
          {agent?.model === null ? (
            <Examples
              pick={(text) => {
                change(text);
                field.current?.focus();
              }}
            />
          ) : null}
        </div>
        <div className={styles.foot}>
          <div role="alert">
            {error === null ? null : (
              <div className={styles.error}>
                {error.code === "cwd" ? `There is no such folder: ${cwd}` : error.message}
                {error.hint === undefined ? null : <small>{error.hint}</small>}
              </div>
            )}
          </div>
          {(hello?.sandboxes.length ?? 0) > 0 ? (
            <Select
              label="Sandbox"
              icon="box"
              value={sandbox}
              onChange={setSandbox}
              choices={[
                { value: "", name: agent?.sandbox ? `As configured (${agent.sandbox})` : "As configured" },
                ...(hello?.sandboxes ?? []).map((name) => ({ value: name, name })),
              ]}
            />
          ) : null}
          <Button look="primary" type="submit" disabled={agent === undefined || creating || !online}>
            {creating ? "Starting…" : "Start"}
          </Button>
        </div>
      </form>
    </main>
  );
}

interface FirstMessageProps {
  field: RefObject<HTMLTextAreaElement | null>;
  value: string;
  commands: readonly Command[];
  onChange(text: string): void;
  send(event: KeyboardEvent): void;
}

/** Completed like the composer, as far as the agent's commands are known before it runs. */
function FirstMessage({ field, value, commands, onChange, send }: FirstMessageProps) {
  const [closed, setClosed] = useState(true); // until something is typed here
  const wanted = wantedAt(value, value.length);
  const suggestions = closed || wanted?.kind !== "command" ? [] : matching(commands, wanted.word);
  const choose = (index: number) => {
    const chosen = suggestions[index];
    if (chosen !== undefined && wanted !== null) onChange(replaceWord(value, wanted, `${chosen.name} `).text);
  };
  const control = useSuggestions(suggestions, choose, () => setClosed(true));
  const open = suggestions.length > 0;
  const onKeyDown = (event: KeyboardEvent) => {
    const enter = event.key === "Enter" && !event.shiftKey;
    const whole = commands.some((command) => `/${command.name}` === value && command.input == null);
    if (!(enter && whole) && control.key(event)) return;
    if (enter && !event.nativeEvent.isComposing) send(event);
  };
  return (
    <div className={styles.input}>
      <textarea
        ref={field}
        id="first-message"
        className={styles.text}
        value={value}
        placeholder={commands.length > 0 ? "What should the agent do? / for commands" : "What should the agent do?"}
        aria-autocomplete="list"
        aria-controls={open ? "first-suggestions" : undefined}
        aria-activedescendant={open ? `first-suggestions-${control.active}` : undefined}
        onChange={(event) => {
          onChange(event.target.value);
          setClosed(false);
        }}
        onBlur={() => setClosed(true)}
        onKeyDown={onKeyDown}
      />
      <Suggestions
        id="first-suggestions"
        label="Commands"
        side="above"
        suggestions={suggestions}
        control={control}
        choose={choose}
      />
    </div>
  );
}

function chosenAgent(
  agents: readonly AgentSummary[],
  picked: string | null,
  usual: string | undefined,
): AgentSummary | undefined {
  const installed = agents.filter((agent) => agent.installed);
  return installed.find(({ name }) => name === picked) ?? installed.find(({ name }) => name === usual) ?? installed[0];
}

function Agents({
  agents,
  picked,
  pick,
}: {
  agents: readonly AgentSummary[];
  picked: string | undefined;
  pick(name: string): void;
}) {
  const absent = agents.filter((agent) => !agent.installed);
  return (
    <fieldset className={styles.field}>
      <legend className={styles.label}>Agent</legend>
      <div className={styles.agents}>
        {agents
          .filter((agent) => agent.installed)
          .map((agent) => (
            <label key={agent.name} className={styles.agent}>
              <input
                type="radio"
                name="agent"
                value={agent.name}
                checked={agent.name === picked}
                onChange={() => pick(agent.name)}
              />
              <b>{agent.title}</b>
              <small>
                {agent.name}
                {agent.default ? " · default" : ""}
                {agent.mediation === undefined ? null : (
                  <span data-level={agent.mediation.level}>{` · ${agent.mediation.level}`}</span>
                )}
              </small>
            </label>
          ))}
      </div>
      <Level agent={agents.find(({ name }) => name === picked)} />
      {absent.length === 0 ? null : (
        <details className={styles.absent} open={absent.length === agents.length || undefined}>
          <summary>
            {absent.length === 1 ? "1 more agent is not installed" : `${absent.length} more agents are not installed`}
          </summary>
          <ul tabIndex={0} aria-label="Agents that are not installed">
            {absent.map((agent) => (
              <li key={agent.name}>
                <b>{agent.title}</b>
                {agent.install === undefined ? <span>Not found</span> : <code>{agent.install}</code>}
              </li>
            ))}
          </ul>
        </details>
      )}
    </fieldset>
  );
}

/** How much of what the agent does the rules see. */
function Level({ agent }: { agent: AgentSummary | undefined }) {
  if (agent?.mediation === undefined) return null;
  const { level, why } = agent.mediation;
  return (
    <p className={styles.mediation}>
      Mediation <b data-level={level}>{level}</b>: {own(LEVELS, level) ?? ""} Because {why}.
    </p>
  );
}

/** The folder's name, with its parent's where another one is called the same. */
function shortName(folder: string, all: readonly string[]): string {
  const name = folderName(folder);
  const alone = all.filter((other) => folderName(other) === name).length === 1;
  return alone ? name : folder.split("/").filter(Boolean).slice(-2).join("/");
}

function RecentFolders({ current, pick }: { current: string; pick(folder: string): void }) {
  const sessions = usePage((state) => state.sessions);
  const folders = useMemo(() => {
    const sorted = [...(sessions?.values() ?? [])].sort((one, other) => other.updatedAt.localeCompare(one.updatedAt));
    return [...new Set(sorted.map((session) => session.workspace ?? session.cwd))]
      .filter((folder) => folder !== current)
      .slice(0, 4);
  }, [sessions, current]);
  if (folders.length === 0) return null;
  return (
    <div className={styles.recent} role="group" aria-label="Recent folders">
      {folders.map((folder) => (
        <button key={folder} type="button" className={styles.chip} title={folder} onClick={() => pick(folder)}>
          <Icon name="folder" size={12} /> {shortName(folder, folders)}
        </button>
      ))}
    </div>
  );
}
