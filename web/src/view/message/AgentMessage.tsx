import { memo } from "react";
import type { AgentItem } from "../../model/conversation";
import { CopyButton } from "../CopyButton";
import { Markdown } from "../markdown/Markdown";
import { Block } from "./Block";
import styles from "./Message.module.css";

/** What the agent said. */
export const AgentMessage = memo(function AgentMessage({ item }: { item: AgentItem }) {
  const last = item.parts.length - 1;
  return (
    <div role="group" className={styles.agent} aria-label="Agent's message" aria-busy={item.streaming}>
      {item.parts.map((part, index) =>
        part.type === "text" ? (
          <Markdown key={index} text={part.text} streaming={item.streaming && index === last} />
        ) : (
          <Block key={index} block={part} />
        ),
      )}
      {item.streaming ? null : (
        <div className={styles.tools}>
          <CopyButton text={() => textOf(item)} label="Copy this message as Markdown" iconOnly />
        </div>
      )}
    </div>
  );
});

export function textOf(item: AgentItem): string {
  return item.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}
