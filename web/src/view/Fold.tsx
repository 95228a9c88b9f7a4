import type { ReactNode } from "react";
import { useFold } from "./fold";
import { Icon } from "./icons";
import styles from "./Fold.module.css";

interface Props {
  /** Unique in the conversation. */
  name: string;
  label: ReactNode;
  aside?: ReactNode;
  open?: boolean;
  children: ReactNode | (() => ReactNode);
}

/** A line that opens what is under it. What is closed is not in the page at all. */
export function Fold({ name, label, aside, open: byDefault = false, children }: Props) {
  const [open, setOpen] = useFold(name, byDefault);
  return (
    <div className={styles.fold}>
      <div className={styles.head}>
        <button type="button" className={styles.toggle} aria-expanded={open} onClick={() => setOpen(!open)}>
          <span className={styles.chevron} data-open={open}>
            <Icon name="chevron" />
          </span>
          {label}
        </button>
        {aside}
      </div>
      {open ? <div className={styles.body}>{typeof children === "function" ? children() : children}</div> : null}
    </div>
  );
}
