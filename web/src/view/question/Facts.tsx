import type { QuestionFacts } from "../../bridge/events";
import { Title } from "../tool/Title";
import details from "./Details.module.css";
import styles from "./Question.module.css";

interface Props {
  facts: QuestionFacts;
  cwd?: string | undefined;
  /** Why it is asked is said elsewhere. */
  told: boolean;
}

/** What the rules see of the call: each command on its own line, files outside the project marked; and why it is asked. */
export function Facts({ facts, cwd, told }: Props) {
  const { commands, paths, hosts, opaque, why } = facts;
  return (
    <div className={details.facts} role="group" aria-label="What the rules see">
      {commands.length + paths.length + hosts.length === 0 ? null : (
        <ul>
          {commands.map((command, index) => (
            <li key={`c${index}`}>
              <span className={details.verb}>runs</span> <code>{command}</code>
            </li>
          ))}
          {paths.map(({ path, access, outside }, index) => (
            <li key={`p${index}`} data-outside={outside}>
              <span className={details.verb}>{access === "write" ? "changes" : "reads"}</span>{" "}
              <code>{shortened(path, cwd)}</code>
              {outside ? <strong className={details.outside}>outside the project</strong> : null}
            </li>
          ))}
          {hosts.map((host) => (
            <li key={host}>
              <span className={details.verb}>reaches</span> <code>{host === "?" ? "an unknown host" : host}</code>
            </li>
          ))}
        </ul>
      )}
      {opaque === undefined ? null : <p className={styles.warning}>Not understood: {opaque}.</p>}
      {told ? null : (
        <p className={details.why}>
          Asked because <Title text={why} />.
        </p>
      )}
    </div>
  );
}

function shortened(path: string, cwd: string | undefined): string {
  return cwd !== undefined && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}
