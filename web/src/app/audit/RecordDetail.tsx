import { type ReactNode, useEffect, useRef, useState } from "react";
import { Button, IconButton } from "../../ui/Button";
import { CopyButton } from "../../view/CopyButton";
import { sessionAddress } from "../route";
import type { Filter } from "./filter";
import { ask, asTrouble, type Trouble } from "./gateway";
import {
  aboutOf,
  actOf,
  type AuditRecord,
  exactly,
  factsOf,
  LONGEST,
  members,
  moment,
  ruleText,
  visible,
  wordOf,
} from "./record";
import styles from "./Audit.module.css";

interface Props {
  id: string;
  show(id: string): void;
  close(): void;
  narrow(changes: Filter): void;
}

/** One record in full: what would be done, which rule said so, what else is recorded of the call, and its hash. */
export function RecordDetail({ id, show, close, narrow }: Props) {
  const [record, setRecord] = useState<AuditRecord | null>(null);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const search = new AbortController();
    ask<AuditRecord>(`/api/audit/records/${encodeURIComponent(id)}?hash=true`, search.signal)
      .then(setRecord)
      .catch((error: unknown) => search.signal.aborted || setTrouble(asTrouble(error)));
    return () => search.abort();
  }, [id]);
  useEffect(() => title.current?.focus(), []);
  const leave = () => {
    close();
    document.querySelector<HTMLElement>("[data-row][tabindex='0']")?.focus();
  };
  return (
    <section
      className={styles.detail}
      aria-label="Record"
      onKeyDown={(event) => {
        if (event.key === "Escape") leave();
      }}
    >
      <div className={styles.detailTop}>
        <h2 ref={title} tabIndex={-1}>
          {record === null ? id : `${wordOf(record).word}, ${moment(record.at)}`}
        </h2>
        <IconButton icon="close" label="Close the record" onClick={leave} />
      </div>
      {trouble === null ? null : (
        <p role="alert">
          {trouble.message} {trouble.hint}
        </p>
      )}
      {record === null ? (
        trouble === null && <p aria-busy="true">Loading…</p>
      ) : (
        <Whole record={record} show={show} narrow={narrow} />
      )}
    </section>
  );
}

function Whole({
  record,
  show,
  narrow,
}: {
  record: AuditRecord;
  show(id: string): void;
  narrow(changes: Filter): void;
}) {
  const session = typeof record.session === "string" ? record.session : "";
  const call = typeof record.call === "string" ? record.call : "";
  return (
    <>
      <Act record={record} />
      <dl className={styles.facts}>
        {factsOf(record).map(([name, value]) => (
          <Fact key={name} name={name}>
            {name === "session" ? <a href={sessionAddress(value)}>{value}</a> : value}
          </Fact>
        ))}
      </dl>
      {session === "" ? null : (
        <Button look="outline" onClick={() => narrow({ session })}>
          Only this session
        </Button>
      )}
      {members(record.rule).name === undefined ? null : (
        <>
          <h3>The rule</h3>
          <Text label="The rule" text={ruleText(record.rule)} />
        </>
      )}
      {session === "" || call === "" ? null : <SameCall record={record} session={session} call={call} show={show} />}
      <h3>Its place in the chain</h3>
      <dl className={styles.facts}>
        <Fact name="id">
          <code>{record.id}</code>
        </Fact>
        <Fact name="time">
          {exactly(record.at)} <small>{record.at}</small>
        </Fact>
        <Fact name="hash">
          <code>{String(record.hash)}</code>
        </Fact>
        <Fact name="hash of the record before">
          <code>{String(record.prev)}</code>
        </Fact>
      </dl>
      <details>
        <summary>All of it, as JSON</summary>
        <Text label="All of it, as JSON" text={visible(JSON.stringify(record, null, 2))} />
      </details>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        <bdi>{children}</bdi>
      </dd>
    </>
  );
}

/** Text of an agent's is shown as text, and not without end. */
function Text({ label, text }: { label: string; text: string }) {
  const cut = text.length > LONGEST;
  return (
    <div className={styles.text}>
      <pre tabIndex={0} aria-label={label} role="group">
        {cut ? text.slice(0, LONGEST) : text}
      </pre>
      <CopyButton text={text} label={`Copy: ${label}`} />
      {cut ? <small>{`Cut after ${LONGEST.toLocaleString()} characters; the export has all.`}</small> : null}
    </div>
  );
}

function Act({ record }: { record: AuditRecord }) {
  const { commands, paths, hosts, opaque } = actOf(record.act);
  if (commands.length + paths.length + hosts.length === 0 && opaque === "") return <p>{aboutOf(record)}</p>;
  const verbs: Record<string, string> = { read: "reads", write: "changes" };
  return (
    <ul className={styles.act} aria-label="What would be done">
      {commands.slice(0, 200).map((command, index) => (
        <li key={`c${index}`}>
          <span>runs</span> <code>{command.slice(0, LONGEST)}</code>
        </li>
      ))}
      {paths.slice(0, 500).map(({ path, access, outside }, index) => (
        <li key={`p${index}`}>
          <span>{verbs[access] ?? access}</span> <code>{path}</code>
          {outside ? <strong>outside the project</strong> : null}
        </li>
      ))}
      {hosts.map((host, index) => (
        <li key={`h${index}`}>
          <span>reaches</span> <code>{host === "?" ? "an unknown host" : host}</code>
        </li>
      ))}
      {opaque === "" ? null : <li>{`Not understood: ${opaque}`}</li>}
    </ul>
  );
}

/** From the question to the end of the call. */
function SameCall({
  record,
  session,
  call,
  show,
}: {
  record: AuditRecord;
  session: string;
  call: string;
  show(id: string): void;
}) {
  const [same, setSame] = useState<readonly AuditRecord[]>([]);
  useEffect(() => {
    const search = new AbortController();
    const query = new URLSearchParams({ session, call, limit: "50" });
    ask<{ records: AuditRecord[] }>(`/api/audit?${query}`, search.signal)
      .then(({ records }) => setSame(records))
      .catch(() => undefined); // the record itself is there
    return () => search.abort();
  }, [session, call]);
  if (same.length < 2) return null;
  return (
    <>
      <h3>The same call</h3>
      <ol className={styles.same}>
        {same.map((each) => (
          <li key={each.id} aria-current={each.id === record.id || undefined}>
            <button type="button" onClick={() => show(each.id)} disabled={each.id === record.id}>
              <time dateTime={each.at}>{moment(each.at)}</time> <span>{wordOf(each).word}</span>
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}
