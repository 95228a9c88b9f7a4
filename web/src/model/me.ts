/** Whose page this is, for questions that only some people may answer. */

import { createContext, useContext } from "react";
import type { Approval, Role } from "../bridge/events";

export interface Me {
  readonly name: string;
  readonly role: Role;
}

export const MeContext = createContext<Me | null>(null);

export function useMe(): Me | null {
  return useContext(MeContext);
}

const RANK: Record<string, number> = { observe: 1, approve: 2, control: 3, admin: 4 };

/** Why an answer of this page would not count; null if it would. The gateway decides; this saves a useless click. */
export function notMine(me: Me | null, approval: Approval | null): string | null {
  if (me === null) return null;
  if (me.role === "observe") return "You may read this session, but not answer.";
  if (approval === null) return null;
  if (approval.promptedBy === me.name) return "You sent the prompt: another person has to approve.";
  if (approval.said.some(({ by }) => by === me.name)) return "You approved. It waits for another person.";
  return approval.rules.some(({ approvers }) => approvers.length === 0 || approvers.some((one) => is(me, one)))
    ? null
    : "You are not one of those who may approve this.";
}

function is(me: Me, approver: string): boolean {
  if (!approver.startsWith("role:")) return approver === me.name;
  return (RANK[me.role] ?? 0) >= (RANK[approver.slice(5)] ?? Infinity);
}
