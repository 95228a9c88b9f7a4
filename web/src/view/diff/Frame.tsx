import type { ReactNode, Ref } from "react";
import type { Diff } from "../../bridge/events";
import { shortPath } from "../words";
import styles from "./Frame.module.css";

interface Props {
  diff: Diff;
  cwd?: string | undefined;
  ref?: Ref<HTMLElement>;
  split?: boolean;
  /** Beside the path. */
  head?: ReactNode;
  children?: ReactNode;
}

/** A file's name over what happened to it. */
export function Frame({ diff, cwd, ref, split = false, head, children }: Props) {
  const path = shortPath(diff.path, cwd);
  return (
    <figure className={styles.diff} ref={ref} data-diff={split ? "split" : "inline"} aria-label={`Changes to ${path}`}>
      <figcaption className={styles.head}>
        <span className={styles.path} title={diff.path}>
          <bdi>{path}</bdi>
        </span>
        {head}
      </figcaption>
      {children}
    </figure>
  );
}
