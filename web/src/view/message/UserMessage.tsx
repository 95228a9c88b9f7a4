import { memo, useMemo } from "react";
import { useActions } from "../../model/actions";
import type { UserItem } from "../../model/conversation";
import { useFold } from "../fold";
import { Icon, Spinner } from "../icons";
import { clock } from "../words";
import { Block } from "./Block";
import { mentions } from "./mentions";
import styles from "./Message.module.css";

const STATES: Record<UserItem["state"], string> = {
  offline: "Waits for the connection",
  sending: "Sending",
  queued: "Queued: it is sent when this turn ends",
  sent: "",
  failed: "Not sent",
};
/** Longer messages begin folded: what the agent says about them is what people come for. */
const LONG = 2_400;

/** What a person said, with the pictures and files that came with it. */
export const UserMessage = memo(function UserMessage({ item }: { item: UserItem }) {
  const others = item.content.filter((block) => block.type !== "text");
  return (
    <div
      role="group"
      className={styles.user}
      data-state={item.state}
      data-told={item.told}
      aria-label={item.told ? "A message, as the agent tells it" : "Your message"}
    >
      {item.told ? <p className={styles.told}>As the agent tells it</p> : null}
      {item.content.map((block, index) =>
        block.type === "text" ? <Text key={index} name={`${item.key}.${index}`} text={block.text} /> : null,
      )}
      {others.length === 0 ? null : (
        <div className={styles.attached}>
          {others.map((block, index) => (
            <Block key={index} block={block} />
          ))}
        </div>
      )}
      {item.state === "sent" ? null : <State item={item} />}
      {item.at > 0 && item.state === "sent" ? (
        <time className={styles.time} dateTime={new Date(item.at).toISOString()}>
          {clock(item.at)}
        </time>
      ) : null}
    </div>
  );
});

function Text({ text, name }: { text: string; name: string }) {
  const long = text.length > LONG;
  const [open, setOpen] = useFold(name, !long);
  const shown = open ? text : `${text.slice(0, LONG / 2).trimEnd()} …`;
  const parts = useMemo(() => mentions(shown), [shown]);
  return (
    <>
      <p className={styles.text}>
        {parts.map((part, index) =>
          part.mention ? (
            <span key={index} className={styles.mention}>
              {part.text}
            </span>
          ) : (
            part.text
          ),
        )}
      </p>
      {long ? (
        <button type="button" className={styles.more} aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show less" : "Show all of it"}
        </button>
      ) : null}
    </>
  );
}

function State({ item }: { item: UserItem }) {
  const actions = useActions();
  const id = item.clientMessageId;
  return (
    <div className={styles.state} data-state={item.state}>
      {item.state === "sending" ? <Spinner /> : <Icon name={item.state === "failed" ? "warning" : "clock"} />}
      <span>
        {STATES[item.state]}
        {item.error === null ? "" : `: ${item.error.message}`}
        {item.error?.hint ? ` ${item.error.hint}` : ""}
      </span>
      {item.state === "failed" && id !== null ? (
        <>
          <button type="button" onClick={() => actions.retryMessage(id)}>
            Send again
          </button>
          <button type="button" onClick={() => actions.dropMessage(id)}>
            Drop
          </button>
        </>
      ) : null}
      {item.state === "offline" && id !== null ? (
        <button type="button" onClick={() => actions.dropMessage(id)}>
          Drop
        </button>
      ) : null}
      {item.state === "queued" && id !== null ? (
        <button type="button" onClick={() => actions.dropQueued(id)}>
          Drop
        </button>
      ) : null}
    </div>
  );
}
