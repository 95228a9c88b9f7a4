/** Why a turn ended, in plain words. */

import type { TurnEndItem } from "../../model/conversation";
import { own } from "../../model/untrusted";

export interface End {
  readonly severity: "info" | "warning" | "error";
  readonly title: string;
  readonly hint: string | null;
}

const REASONS: Record<string, End | null> = {
  end_turn: null,
  cancelled: { severity: "info", title: "You stopped this turn.", hint: null },
  max_tokens: { severity: "warning", title: "The agent ran out of tokens for one answer.", hint: "Ask it to go on." },
  max_turn_requests: {
    severity: "warning",
    title: "The agent made as many requests as one turn allows.",
    hint: "Ask it to go on.",
  },
  refusal: {
    severity: "warning",
    title: "The agent declined to answer.",
    hint: "The agent forgot what came since your last message.",
  },
  interrupted: {
    severity: "warning",
    title: "The turn was interrupted.",
    hint: "The agent or the gateway ended while it ran. Send your message again.",
  },
};

/** null: as it should be. */
export function endOf(item: Pick<TurnEndItem, "stopReason" | "error">): End | null {
  if (item.error !== null) {
    return {
      severity: "error",
      title: item.error.message || `The turn failed (${item.error.code}).`,
      hint: item.error.hint ?? null,
    };
  }
  if (item.stopReason === null) return { severity: "warning", title: "The turn ended without a reason.", hint: null };
  const known = own(REASONS, item.stopReason);
  if (known !== undefined) return known;
  return { severity: "info", title: `The turn ended: ${item.stopReason.replaceAll("_", " ")}.`, hint: null };
}
