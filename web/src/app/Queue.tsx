import { useState } from "react";
import type { ContentBlock, QueuedMessage } from "../bridge/events";
import { Button, IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import styles from "./Composer.module.css";
import { useChat } from "./page";

interface Props {
  sessionId: string;
  queue: readonly QueuedMessage[];
  working: boolean;
  observer: boolean;
}

/** Messages that wait for the running turn to end; those of a turn that was stopped wait for a person. */
export function Queue({ sessionId, queue, working, observer }: Props) {
  const waits = (queued: QueuedMessage) => !observer && (!working || queued.held !== undefined);
  return (
    <div className={styles.queue}>
      {queue.some(waits) ? <Offer sessionId={sessionId} queue={queue} /> : null}
      <ul aria-label="Queued messages">
        {queue.map((queued) => (
          <Queued
            key={queued.clientMessageId}
            sessionId={sessionId}
            queued={queued}
            sendable={waits(queued)}
            observer={observer}
          />
        ))}
      </ul>
    </div>
  );
}

/** What becomes of messages that are not sent by themselves. */
function Offer({ sessionId, queue }: { sessionId: string; queue: readonly QueuedMessage[] }) {
  const chat = useChat();
  const stopped = queue.filter((queued) => queued.stopped === true).length;
  const count = (number: number) => (number === 1 ? "1 message" : `${number} messages`);
  const words = stopped > 0 ? `Stopped. ${count(stopped)} not sent.` : `${count(queue.length)} not sent.`;
  const dropAll = () => {
    for (const queued of queue) chat.dropQueued(sessionId, queued.clientMessageId);
  };
  return (
    <div className={styles.offer}>
      <span role="status">{words}</span>
      <Button onClick={() => chat.sendQueued(sessionId)}>{queue.length === 1 ? "Send" : "Send all"}</Button>
      <Button onClick={dropAll}>{queue.length === 1 ? "Remove" : "Remove all"}</Button>
    </div>
  );
}

function Queued({
  sessionId,
  queued,
  sendable,
  observer,
}: {
  sessionId: string;
  queued: QueuedMessage;
  sendable: boolean;
  observer: boolean;
}) {
  const chat = useChat();
  const [text, setText] = useState<string | null>(null);
  const words = wordsOf(queued.content);
  const id = queued.clientMessageId;
  const save = () => {
    if (text !== null && text.trim() !== "") chat.editQueued(sessionId, id, withWords(queued.content, text.trim()));
    setText(null);
  };
  return (
    <li className={styles.queued}>
      <Icon name="clock" size={14} />
      {queued.held ? <strong title={queued.held}>Not sent</strong> : null}
      {text === null ? (
        <p title={queued.held ? `${words}\n\n${queued.held}` : words}>{words || "Attachment"}</p>
      ) : (
        <textarea
          aria-label="Edit the queued message"
          value={text}
          autoFocus
          rows={Math.min(6, text.split("\n").length)}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            event.stopPropagation();
            if (event.key === "Escape") setText(null);
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              save();
            }
          }}
        />
      )}
      {observer ? null : (
        <>
          {sendable && text === null ? (
            <IconButton icon="send" label="Send now" onClick={() => chat.sendQueued(sessionId, id)} />
          ) : null}
          {text === null ? (
            <IconButton icon="edit" label="Edit" onClick={() => setText(words)} />
          ) : (
            <IconButton icon="check" label="Save" onClick={save} />
          )}
          <IconButton icon="close" label="Remove from the queue" onClick={() => chat.dropQueued(sessionId, id)} />
        </>
      )}
    </li>
  );
}

function wordsOf(content: readonly ContentBlock[]): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

function withWords(content: readonly ContentBlock[], text: string): ContentBlock[] {
  return [{ type: "text", text }, ...content.filter((block) => block.type !== "text")];
}
