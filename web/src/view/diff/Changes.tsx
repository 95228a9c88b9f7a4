import { useMemo } from "react";
import type { ToolContent } from "../../bridge/events";
import { plural } from "../words";
import { diffLines } from "./hunks";
import styles from "./Diff.module.css";

export function Changes({ content }: { content: readonly ToolContent[] }) {
  const counts = useMemo(() => {
    const sums = { added: 0, removed: 0 };
    for (const part of content) {
      if (part.type !== "diff") continue;
      const { added, removed } = diffLines(part.oldText ?? "", part.newText);
      sums.added += added;
      sums.removed += removed;
    }
    return sums;
  }, [content]);
  return counts.added + counts.removed === 0 ? null : <Counts {...counts} />;
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className={styles.counts}>
      {added > 0 ? (
        <span className={styles.plus} aria-label={`${plural(added, "line")} added`} role="img">
          +{added}
        </span>
      ) : null}
      {removed > 0 ? (
        <span className={styles.minus} aria-label={`${plural(removed, "line")} removed`} role="img">
          −{removed}
        </span>
      ) : null}
    </span>
  );
}
