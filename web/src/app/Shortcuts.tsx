import { Fragment } from "react";
import { Dialog } from "../ui/Dialog";
import styles from "./Shortcuts.module.css";

const SHORTCUTS: readonly [keys: string[], does: string][] = [
  [["Enter"], "Send, or queue while the agent works"],
  [["Shift", "Enter"], "New line"],
  [["Esc"], "Stop the agent"],
  [["/"], "Write a message; at its beginning: commands"],
  [["@"], "Mention a file"],
  [["Alt", "Q"], "Go to the oldest question"],
  [["Y", "N"], "Answer the question that has the focus: yes or no, once"],
  [["Alt", "N"], "New session"],
  [["Alt", "↑"], "Session above"],
  [["Alt", "↓"], "Session below"],
  [["Ctrl", "K"], "Search sessions"],
  [["?"], "This list"],
];

export default function Shortcuts({ close }: { close(): void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <dl className={styles.list}>
        {SHORTCUTS.map(([keys, does]) => (
          <Fragment key={does}>
            <dt>
              {keys.map((key, index) => (
                <Fragment key={key}>
                  {index > 0 ? " " : ""}
                  {key === "…" ? key : <kbd>{key}</kbd>}
                </Fragment>
              ))}
            </dt>
            <dd>{does}</dd>
          </Fragment>
        ))}
      </dl>
    </Dialog>
  );
}
