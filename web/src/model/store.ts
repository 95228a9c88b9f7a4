/** Everything the page shows, in one place; `Chat` (chat.ts) is the only one that writes it. */

import { createStore, type StoreApi } from "zustand/vanilla";
import type { Entry } from "../bridge/outbox";
import type { Hello, Status } from "../bridge/client";
import type { SessionSummary } from "../bridge/events";
import type { Conversation } from "./conversation";

export interface Toast {
  readonly id: string;
  readonly text: string;
  readonly tone: "info" | "error";
  /** What the button says and does; the toast goes when it was pressed. */
  readonly action?: { readonly label: string; run(): void };
}

export interface PageState {
  readonly status: Status;
  readonly hello: Hello | null;
  readonly unsent: readonly Entry[];
  /** By id; null until the gateway sent the list. */
  readonly sessions: ReadonlyMap<string, SessionSummary> | null;
  readonly nextCursor: string | null;
  readonly search: string;
  /** What the search found, beyond what the list holds. */
  readonly found: readonly SessionSummary[];
  /** Deleted on this page, and can still be undone. */
  readonly leaving: ReadonlySet<string>;
  readonly current: string | null;
  readonly conversations: ReadonlyMap<string, Conversation>;
  /** Sessions that could not be opened, and why. */
  readonly trouble: ReadonlyMap<string, { readonly code: string; readonly message: string; readonly hint?: string }>;
  readonly loadingOlder: ReadonlySet<string>;
  readonly creating: boolean;
  readonly toasts: readonly Toast[];
}

export type PageStore = StoreApi<PageState>;

export function createPageStore(): PageStore {
  return createStore<PageState>(() => ({
    status: { state: "connecting", attempt: 0, retryAt: 0, unsent: 0 },
    hello: null,
    unsent: [],
    sessions: null,
    nextCursor: null,
    search: "",
    found: [],
    leaving: new Set(),
    current: null,
    conversations: new Map(),
    trouble: new Map(),
    loadingOlder: new Set(),
    creating: false,
    toasts: [],
  }));
}
