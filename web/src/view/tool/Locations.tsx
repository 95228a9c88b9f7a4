import type { ToolLocation } from "../../bridge/events";
import { CopyButton } from "../CopyButton";
import { plural, shortPath } from "../words";
import styles from "./ToolCard.module.css";

const SHOWN = 8;

/** The places in files that a call is about. */
export function Locations({ locations: all, cwd }: { locations: readonly ToolLocation[]; cwd?: string | undefined }) {
  const locations = all.filter(({ path }) => shortPath(path, cwd) !== "."); // where every call is
  if (locations.length === 0) return null;
  return (
    <ul className={styles.locations} aria-label="Files">
      {locations.slice(0, SHOWN).map(({ path, line }, index) => {
        const place = line ? `${path}:${line}` : path;
        return (
          <li key={index} className={styles.location} title={place}>
            <span className={styles.place}>
              <bdi>
                {shortPath(path, cwd)}
                {line ? <span className={styles.line}>:{line}</span> : null}
              </bdi>
            </span>
            <CopyButton text={place} label={`Copy ${place}`} iconOnly />
          </li>
        );
      })}
      {locations.length > SHOWN ? (
        <li className={styles.remark}>and {plural(locations.length - SHOWN, "more place")}</li>
      ) : null}
    </ul>
  );
}
