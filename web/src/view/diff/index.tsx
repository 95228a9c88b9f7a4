/** Diffs, loaded with the first one that is drawn: the differ is no part of the first load. */

import { type ComponentProps, lazy, Suspense } from "react";
import type { ToolContent } from "../../bridge/events";
import type { Diff as Drawn } from "./Diff";
import { Frame } from "./Frame";

const LazyDiff = lazy(() => import("./Diff").then((module) => ({ default: module.Diff })));
const LazyChanges = lazy(() => import("./Changes").then((module) => ({ default: module.Changes })));

export function Diff(props: ComponentProps<typeof Drawn>) {
  return (
    <Suspense fallback={<Frame diff={props.diff} cwd={props.cwd} />}>
      <LazyDiff {...props} />
    </Suspense>
  );
}

/** How many lines a call added and removed. */
export function Changes({ content }: { content: readonly ToolContent[] }) {
  if (!content.some((part) => part.type === "diff")) return null;
  return (
    <Suspense>
      <LazyChanges content={content} />
    </Suspense>
  );
}
