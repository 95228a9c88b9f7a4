import { useId, useState } from "react";
import type { Rememberable, Wish } from "../../bridge/events";
import { own } from "../../model/untrusted";
import { Fold } from "../Fold";
import details from "./Details.module.css";
import styles from "./Question.module.css";

const SCOPES: Record<string, string> = {
  session: "in this session",
  project: "in this project",
  everywhere: "everywhere",
};
const TIMES: Record<string, string> = { "1h": "for an hour", today: "today" };

/** What was opened may be below the end of the card. */
const reveal = (opened: HTMLDivElement | null) => opened?.scrollIntoView({ block: "nearest" });

interface Props {
  /** Unique in the conversation. */
  name: string;
  remember: Rememberable;
  disabled: boolean;
  onAllow(wish: Wish): void;
}

/** An answer for longer than once: the exact pattern, which may be edited, where it holds and until when. */
export function Remember({ name, remember, disabled, onAllow }: Props) {
  const id = useId();
  const shown = remember.pattern.join("\n");
  const [pattern, setPattern] = useState(shown);
  const [scope, setScope] = useState("project");
  const [until, setUntil] = useState("");
  const lines = pattern
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const allow = () =>
    onAllow({
      scope,
      ...(until === "" ? {} : { until }),
      ...(pattern === shown ? {} : { pattern: lines }),
    });
  return (
    <Fold name={`remember ${name}`} label="Remember this…">
      <div className={details.remember} ref={reveal}>
        <label htmlFor={`${id}p`} className={styles.label}>
          What is allowed
        </label>
        <textarea
          id={`${id}p`}
          className={details.pattern}
          aria-describedby={`${id}h`}
          rows={Math.min(8, Math.max(1, pattern.split("\n").length))}
          spellCheck={false}
          autoCapitalize="off"
          value={pattern}
          onChange={(event) => setPattern(event.target.value)}
        />
        <p className={styles.hint} id={`${id}h`}>
          One line each. <code>run make *</code> allows every command that begins so, <code>write src/**</code> every
          file there.
        </p>
        <div className={details.holds}>
          <select
            className={styles.input}
            aria-label="Where it holds"
            value={scope}
            onChange={(event) => setScope(event.target.value)}
          >
            {remember.scopes.map((each) => (
              <option key={each} value={each}>
                {own(SCOPES, each) ?? each}
              </option>
            ))}
          </select>
          <select
            className={styles.input}
            aria-label="Until when"
            value={until}
            onChange={(event) => setUntil(event.target.value)}
          >
            <option value="">until I revoke it</option>
            {remember.until.map((each) => (
              <option key={each} value={each}>
                {own(TIMES, each) ?? each}
              </option>
            ))}
          </select>
          <button
            type="button"
            className={styles.option}
            data-tone="always"
            disabled={disabled || lines.length === 0}
            onClick={allow}
          >
            Allow and remember
          </button>
        </div>
      </div>
    </Fold>
  );
}
