import { useState } from "react";
import type { ContentBlock, QueuedMessage } from "../bridge/events";
import { IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import styles from "./Composer.module.css";
import { useChat } from "./page";

/** Messages that wait for the running turn to end. */
export function Queue({ sessionId, queue }: { sessionId: string; queue: readonly QueuedMessage[] }) {
  if (queue.length === 0) return null;
  return (
    <ul className={styles.queue} aria-label="Queued messages">
      {queue.map((queued) => <Queued key={queued.clientMessageId} sessionId={sessionId} queued={queued} />)}
    </ul>
  );
}

function Queued({ sessionId, queued }: { sessionId: string; queued: QueuedMessage }) {
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
      {text === null ? <p title={queued.held ? `${words}\n\n${queued.held}` : words}>{words || "Attachment"}</p> : (
        <textarea aria-label="Edit the queued message" value={text} autoFocus rows={Math.min(6, text.split("\n").length)} onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            event.stopPropagation();
            if (event.key === "Escape") setText(null);
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              save();
            }
          }} />
      )}
      {text === null ? <IconButton icon="edit" label="Edit" onClick={() => setText(words)} /> : <IconButton icon="check" label="Save" onClick={save} />}
      <IconButton icon="close" label="Remove from the queue" onClick={() => chat.dropQueued(sessionId, id)} />
    </li>
  );
}

function wordsOf(content: readonly ContentBlock[]): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

function withWords(content: readonly ContentBlock[], text: string): ContentBlock[] {
  return [{ type: "text", text }, ...content.filter((block) => block.type !== "text")];
}
