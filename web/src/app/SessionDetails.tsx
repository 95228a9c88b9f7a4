import type { Mediation, SessionSummary } from "../bridge/events";
import { own } from "../model/untrusted";
import { Dialog } from "../ui/Dialog";
import { auditAddress } from "./audit/filter";
import { LEVELS } from "./levels";
import styles from "./SessionDetails.module.css";

interface Props {
  session: SessionSummary;
  mediation: Mediation | undefined;
  close(): void;
}

/** Who works where, and how much of it the rules see. */
export default function SessionDetails({ session, mediation, close }: Props) {
  return (
    <Dialog title="This session" onClose={close}>
      <dl className={styles.details}>
        <dt>Agent</dt>
        <dd>{session.agent}</dd>
        <dt>Mediation</dt>
        <dd>
          {mediation === undefined ? (
            "Not known: the agent is not configured any more."
          ) : (
            <>
              <b data-level={mediation.level}>{mediation.level}</b> {own(LEVELS, mediation.level) ?? ""}
              <small>Because {mediation.why}.</small>
            </>
          )}
        </dd>
        <dt>Folder</dt>
        <dd>{session.cwd}</dd>
        <dt>Sandbox</dt>
        <dd>{session.sandbox ?? "none: it can do what you can do"}</dd>
        <dt>Id</dt>
        <dd>{session.sessionId}</dd>
      </dl>
      <p className={styles.links}>
        <a href={auditAddress({ session: session.sessionId })}>What is recorded of it</a>
        {" · "}
        <a href="#/policy">The rules</a>
      </p>
    </Dialog>
  );
}
