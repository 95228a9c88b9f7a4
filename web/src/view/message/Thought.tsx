import { memo } from "react";
import type { ThoughtItem } from "../../model/conversation";
import { useFold } from "../fold";
import { Icon } from "../icons";
import { Markdown } from "../markdown/Markdown";
import { useNow } from "../time";
import { duration, elapsed } from "../words";
import styles from "./Message.module.css";

/** What the agent thought, folded to a line that says how long it took. */
export const Thought = memo(function Thought({ item }: { item: ThoughtItem }) {
  const [open, setOpen] = useFold(item.key, false);
  return (
    <div role="group" className={styles.thought} aria-label="Agent's thought">
      <button type="button" className={styles.thoughtHead} aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="think" />
        <Label item={item} />
        {open ? null : <span className={styles.gist}>{gist(item.text)}</span>}
        <span className={styles.chevron} data-open={open}>
          <Icon name="chevron" />
        </span>
      </button>
      {open ? (
        <div className={styles.thoughtBody}>
          <Markdown text={item.text} streaming={item.streaming} />
        </div>
      ) : null}
    </div>
  );
});

function Label({ item }: { item: ThoughtItem }) {
  const now = useNow(item.streaming);
  if (item.streaming) {
    const time = now - item.at;
    return <span className={styles.shimmer}>Thinking{item.at > 0 && time > 2000 ? ` for ${elapsed(time)}` : ""}</span>;
  }
  const took = item.endedAt - item.at;
  return <span>{item.at > 0 && item.endedAt > 0 && took >= 1000 ? `Thought for ${duration(took)}` : "Thought"}</span>;
}

/** Its first line, without Markdown's signs. */
function gist(text: string): string {
  const line =
    text
      .trimStart()
      .slice(0, 300)
      .split("\n")
      .find((part) => part.trim() !== "") ?? "";
  return line
    .replace(/[*_`#>]+/g, "")
    .trim()
    .slice(0, 160);
}
