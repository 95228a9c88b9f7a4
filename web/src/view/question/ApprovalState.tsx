import type { Approval } from "../../bridge/events";
import { Icon } from "../icons";
import styles from "./Question.module.css";

/** Who has to approve, who did, and since when it waits. */
export function ApprovalState({ approval }: { approval: Approval }) {
  return (
    <div className={styles.approval} role="group" aria-label="Approvals">
      {approval.rules.map(({ rule, approvals, approvers }) => (
        <p key={rule}>
          {approvals === 1 ? "1 approval" : `${approvals} approvals`}
          {approvers.length === 0 ? "" : ` of ${approvers.join(" or ")}`} needed by the rule “{rule}”
        </p>
      ))}
      <ul>
        {approval.said.map(({ by, at }) => (
          <li key={by}>
            <Icon name="allowed" /> {by} approved at {timeOf(at)}
          </li>
        ))}
      </ul>
      <p className={styles.since}>
        Prompted by {approval.promptedBy}, waits since {timeOf(approval.since)}
      </p>
    </div>
  );
}

function timeOf(stamp: string): string {
  const at = new Date(stamp);
  return Number.isNaN(at.getTime()) ? "?" : at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}
