/** What is in a session's composer and not sent: kept across reloads and switches, so nothing typed is lost. */

import type { ContentBlock } from "../bridge/events";
import { keep, kept } from "./kept";

export interface Attachment {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly block: ContentBlock;
  /** For showing an image. */
  readonly preview: string | null;
}

export interface Draft {
  readonly text: string;
  /** Files that were picked with @: what stands in the text, and the path it means. */
  readonly mentions: Readonly<Record<string, string>>;
  readonly attachments: readonly Attachment[];
}

export const EMPTY: Draft = { text: "", mentions: {}, attachments: [] };

const KEY = "dragoman.draft.";
const live = new Map<string, Draft>();

export function draftOf(sessionId: string): Draft {
  const known = live.get(sessionId);
  if (known !== undefined) return known;
  const stored = kept("sessionStorage", KEY + sessionId);
  if (stored === null) return EMPTY;
  try {
    return { ...EMPTY, ...(JSON.parse(stored) as Partial<Draft>) };
  } catch {
    return { ...EMPTY, text: stored };
  }
}

export function keepDraft(sessionId: string, draft: Draft): void {
  live.set(sessionId, draft);
  const empty = draft.text === "" && draft.attachments.length === 0;
  const { attachments, ...words } = draft;
  keep("sessionStorage", KEY + sessionId, empty ? null : JSON.stringify(words));
  // With the images when they fit; the words alone are there already if they do not.
  if (attachments.length > 0) keep("sessionStorage", KEY + sessionId, JSON.stringify(draft));
}
