import { type Live, LIVE_WORDS } from "../model/sessions";
import styles from "./StateDot.module.css";

/** Shape and colour both say it, and so does the text for those who see neither. */
export function StateDot({ live }: { live: Live }) {
  return (
    <span
      className={`${styles.dot} ${styles[live]}`}
      role="img"
      aria-label={LIVE_WORDS[live]}
      title={LIVE_WORDS[live]}
    />
  );
}
