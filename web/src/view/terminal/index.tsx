/** Terminals, loaded with the first one that is drawn. */

import { type ComponentProps, lazy, Suspense } from "react";
import type { Terminal as Drawn } from "./Terminal";
import styles from "./Waiting.module.css";

const LazyTerminal = lazy(() => import("./Terminal").then((module) => ({ default: module.Terminal })));

export function Terminal(props: ComponentProps<typeof Drawn>) {
  return (
    <Suspense fallback={<div className={styles.waiting} />}>
      <LazyTerminal {...props} />
    </Suspense>
  );
}
