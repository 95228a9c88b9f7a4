import { memo } from "react";
import type { PermissionItem } from "../../model/conversation";
import { own } from "../../model/untrusted";
import { Icon, type IconName } from "../icons";
import { plainTitle, Title } from "../tool/Title";
import styles from "./Question.module.css";

interface Told {
  readonly icon: IconName;
  readonly tone: "ok" | "bad" | "warn" | "faint";
  readonly words: string;
}

const KINDS: Record<string, Told> = {
  allow_once: { icon: "allowed", tone: "ok", words: "Allowed once" },
  allow_always: { icon: "allowed", tone: "ok", words: "Always allowed" },
  reject_once: { icon: "refused", tone: "bad", words: "Refused" },
  reject_always: { icon: "refused", tone: "bad", words: "Always refused" },
};

/** A question's line in the conversation: what was asked, and who answered what, or that it waits. */
export const PermissionAnswer = memo(function PermissionAnswer({
  item,
  cwd,
}: {
  item: PermissionItem;
  cwd?: string | undefined;
}) {
  const { icon, tone, words } = tell(item);
  return (
    <div role="group" className={styles.answer} data-tone={tone} aria-label={`Permission: ${words}`}>
      <Icon name={icon} />
      <span className={styles.verdict}>{words}</span>
      <span className={styles.about}>
        <Title text={item.toolCall.title ?? "a tool call"} cwd={cwd} />
      </span>
      {item.answer === null ? null : <span className={styles.by}>{approvedBy(item) ?? whoAnswered(item)}</span>}
    </div>
  );
});

function tell(item: PermissionItem): Told {
  if (item.answer === null) return { icon: "shield", tone: "warn", words: "Waits for an answer" };
  if (item.answer.outcome === "cancelled") return { icon: "stopped", tone: "faint", words: "Not answered" };
  const where = own(PLACES, item.answer.remembered?.scope ?? "");
  if (where !== undefined)
    return { icon: "allowed", tone: "ok", words: `Allowed ${where}${until(item.answer.remembered?.until)}` };
  const option = item.options.find((each) => each.optionId === item.answer?.optionId);
  const known = own(KINDS, option?.kind ?? "");
  return (
    known ?? { icon: "allowed", tone: "faint", words: option === undefined ? "Answered" : plainTitle(option.name) }
  );
}

const PLACES: Record<string, string> = {
  session: "in this session",
  project: "in this project",
  everywhere: "everywhere",
};

function until(end: string | null | undefined): string {
  return end === null || end === undefined
    ? ""
    : ` until ${new Date(end).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`;
}

/** What ends an unanswered question, as the gateway names it. */
export const ENDS: Record<string, string> = {
  cancel: "the turn was stopped",
  timeout: "not answered in time",
  turn_end: "the turn ended",
  agent_exited: "the agent ended",
  restart: "Dragoman was restarted",
  close: "the session was closed",
  policy: "by policy",
  gateway: "by Dragoman",
};

/** Who approved, or who rejected, where several people had to. */
function approvedBy({ answer, approval, options }: PermissionItem): string | undefined {
  if (approval === null || answer?.outcome !== "selected") return undefined;
  const rejected = /^reject/.test(options.find(({ optionId }) => optionId === answer.optionId)?.kind ?? "");
  const names = rejected ? [answer.who] : approval.said.map(({ by }) => by);
  return `by ${names.join(" and ")}`;
}

/** The name that the gateway knows this page by. */
const PAGE = "Dragoman's page";

/** "by you", "elsewhere, in Zed", "the turn was stopped". */
export function whoAnswered(item: { readonly mine: boolean; readonly answer: { readonly by: string } | null }): string {
  const by = item.answer?.by ?? "";
  const ended = own(ENDS, by);
  if (ended !== undefined) return ended;
  if (item.mine) return "by you";
  if (by === PAGE) return "in the web chat"; // here before a reload, or in another tab
  return by === "" || by === "user" ? "elsewhere" : `elsewhere, in ${by}`;
}
