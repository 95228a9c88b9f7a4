/** Our own line drawings, on a 16 px grid. They say nothing to a screen reader: the text beside them does. */

import type { ToolKind } from "../bridge/events";
import styles from "./icons.module.css";

const PATHS = {
  read: "M8 4.5v8.5l-1-.5H2.5v-9H7zl1-1h4.5v9H9l-1 .5",
  edit: "M10.5 3l2.5 2.5L6 12.5l-3 .5.5-3zM9 4.5L11.5 7",
  delete:
    "M3 4.5h10M6.5 4.5v-1a1 1 0 0 1 1-1h1a1 1 0 0 1 1 1v1M4.5 4.5l.5 8a1 1 0 0 0 1 1h4a1 1 0 0 0 1-1l.5-8M6.8 7v4M9.2 7v4",
  move: "M2.5 8h10.5M9.5 4.5L13 8l-3.5 3.5M2.5 4v8",
  search: "M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4zM10.2 10.2l3.3 3.3",
  execute: "M2.5 3.5h11v9h-11zM5 6.5L6.8 8 5 9.5M8 10h2.8",
  think: "M8 2.5a4 4 0 0 1 2.4 7.2c-.5.4-.7.8-.7 1.3H6.3c0-.5-.2-.9-.7-1.3A4 4 0 0 1 8 2.5zM6.6 13.2h2.8",
  fetch: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM2.7 8h10.6M8 2.5c3.2 3 3.2 8 0 11M8 2.5c-3.2 3-3.2 8 0 11",
  switch_mode: "M3 5.5h9M9.8 3L12.3 5.5 9.8 8M13 10.5H4M6.2 8L3.7 10.5 6.2 13",
  other:
    "M9.8 2.8a3.2 3.2 0 0 0-3 4.3L3 10.9V13h2.1l3.8-3.8a3.2 3.2 0 0 0 4.2-4.1l-1.9 1.9-1.8-.4-.4-1.8 1.9-1.9a3 3 0 0 0-1.1-.1z",
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h7v7h-7zM10.5 5.5v-2h-7v7h2",
  chevron: "M6 4l4 4-4 4",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  latest: "M8 3v9M4.5 8.5L8 12l3.5-3.5",
  file: "M4 2.5h5L12 5.5v8H4zM9 2.5v3h3",
  image: "M2.5 3.5h11v9h-11zM2.5 10.5l3-3 3 3 2-2 3 3M10.5 5.8v.4",
  link: "M6 8h4M7 5H5a3 3 0 0 0 0 6h2M9 5h2a3 3 0 0 1 0 6H9",
  info: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 7.5v3.3M8 5.1v.3",
  warning: "M8 2.8l5.7 10.1H2.3zM8 6.5v3M8 11.2v.2",
  shield: "M8 2.3l4.7 1.8v3.6c0 3-2 5-4.7 6-2.7-1-4.7-3-4.7-6V4.1zM8 5.6v2.6M8 10.2v.2",
  allowed: "M8 2.3l4.7 1.8v3.6c0 3-2 5-4.7 6-2.7-1-4.7-3-4.7-6V4.1zM5.8 8l1.6 1.6L10.4 6.3",
  refused: "M8 2.3l4.7 1.8v3.6c0 3-2 5-4.7 6-2.7-1-4.7-3-4.7-6V4.1zM6.2 6.2l3.6 3.6M9.8 6.2L6.2 9.8",
  question: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM6.4 6.4a1.7 1.7 0 1 1 2.4 1.7c-.5.2-.8.5-.8 1M8 11v.2",
  plan: "M6.5 4.5h7M6.5 8h7M6.5 11.5h7M2.5 4.5l.8.8L4.8 3.8M2.5 8l.8.8 1.5-1.5M2.6 11.5h1.4",
  download: "M8 2.5v7.5M4.8 7L8 10.2 11.2 7M3 13h10",
  pending: "M8 3.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9z",
  stopped: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM5.5 8h5",
  retry: "M12.5 8a4.5 4.5 0 1 1-1.4-3.3M12.7 2.7v2.6h-2.6",
  clock: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3.2l2 1.3",
  split: "M2.5 3.5h11v9h-11zM8 3.5v9",
  inline: "M2.5 3.5h11v9h-11zM2.5 8h11",
  unknown: "M6 3.5C4.5 3.5 5 7 3.5 8 5 9 4.5 12.5 6 12.5M10 3.5c1.5 0 1 3.5 2.5 4.5-1.5 1-1 4.5-2.5 4.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className={styles.icon} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Spinner() {
  return (
    <svg className={`${styles.icon} ${styles.spinner}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <circle cx="8" cy="8" r="5.5" opacity="0.25" />
      <path d="M8 2.5A5.5 5.5 0 0 1 13.5 8" />
    </svg>
  );
}

export function ToolIcon({ kind }: { kind: ToolKind }) {
  return <Icon name={Object.hasOwn(PATHS, kind) ? kind : "other"} />;
}
