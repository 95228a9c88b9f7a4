import { useEffect, useState } from "react";
import { copyText } from "./copy";
import { Icon } from "./icons";
import styles from "./CopyButton.module.css";

/** A small button that copies `text` and says that it did. */
export function CopyButton({
  text,
  label,
  iconOnly = false,
}: {
  text: string | (() => string);
  label: string;
  iconOnly?: boolean;
}) {
  const [state, setState] = useState<"idle" | "done" | "refused">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 1500);
    return () => clearTimeout(timer);
  }, [state]);
  const words = { idle: "Copy", done: "Copied", refused: "Not allowed" }[state];
  return (
    <button
      type="button"
      className={styles.copy}
      data-state={state}
      aria-label={state === "idle" ? label : words}
      title={label}
      onClick={(event) => {
        event.stopPropagation();
        void copyText(typeof text === "string" ? text : text()).then((done) => setState(done ? "done" : "refused"));
      }}
    >
      <Icon name={state === "done" ? "check" : "copy"} />
      {iconOnly ? null : <span>{words}</span>}
    </button>
  );
}
