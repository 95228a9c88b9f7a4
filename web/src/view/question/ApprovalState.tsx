import type { Approval } from "../../bridge/events";
import { Icon } from "../icons";
import { clock, elapsed, plural } from "../words";
import { useNow } from "../time";
import styles from "./Details.module.css";

/** Who has to approve, who did, who is waited for and since when. */
export function ApprovalState({ approval }: { approval: Approval }) {
  const { rules, said, promptedBy, since } = approval;
  const most = Math.max(1, ...rules.map(({ approvals }) => approvals));
  const missing = most - said.length;
  return (
    <div className={styles.approval} role="group" aria-label="Approvals">
      {rules.map(({ rule, approvals, approvers }) => (
        <p key={rule}>
          Asked because it needs {approvals === 1 ? "1 approval" : `${approvals} approvals`} of {whom(approvers)}, by
          the rule “{rule}”
        </p>
      ))}
      <ul>
        {said.map(({ by, at }) => (
          <li key={by} data-said>
            <Icon name="allowed" /> {by} approved at {timeOf(at)}
          </li>
        ))}
        {missing > 0 ? (
          <li>
            <Icon name="pending" /> Waits for{" "}
            {said.length === 0 ? plural(missing, "person", "people") : `${missing} more`}
          </li>
        ) : null}
      </ul>
      <p className={styles.since}>
        Prompted by {promptedBy || "nobody known"}, who does not count. <Since since={since} />
      </p>
    </div>
  );
}

/** `role:approve` is said in words; without names anybody else may. */
function whom(approvers: readonly string[]): string {
  const told = approvers.map((one) => (one.startsWith("role:") ? `those with the role ${one.slice(5)}` : one));
  return told.length === 0 ? "other people" : told.join(" or ");
}

function Since({ since }: { since: string }) {
  const now = useNow(true);
  const waited = now - Date.parse(since);
  return (
    <>
      Waits since {timeOf(since)}
      {waited >= 60_000 ? `, ${elapsed(waited)} by now` : ""}.
    </>
  );
}

function timeOf(stamp: string): string {
  const at = new Date(stamp);
  if (Number.isNaN(at.getTime())) return "?";
  const today = at.toDateString() === new Date().toDateString();
  return today
    ? clock(at.getTime())
    : `${at.toLocaleDateString([], { day: "numeric", month: "short" })}, ${clock(at.getTime())}`;
}
