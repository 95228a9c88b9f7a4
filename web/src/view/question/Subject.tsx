import type { ToolCallFields } from "../../bridge/events";
import { Diff } from "../diff";
import { CodeBlock } from "../markdown/CodeBlock";
import { Markdown } from "../markdown/Markdown";
import { Block } from "../message/Block";
import { addressOf, asText, commandOf, isEmpty, pathOf } from "../tool/input";
import { Locations } from "../tool/Locations";
import styles from "./Question.module.css";

/** All that a permission question is about: the command, the paths, the changes, in full. */
export function Subject({ toolCall, cwd }: { toolCall: ToolCallFields; cwd?: string | undefined }) {
  const command = commandOf(toolCall.rawInput);
  const content = toolCall.content ?? [];
  const diffs = content.filter((part) => part.type === "diff");
  const texts = content.flatMap((part) => (part.type === "content" ? [part.content] : []));
  const path = pathOf(toolCall.rawInput);
  const locations = toolCall.locations?.length ? toolCall.locations : path === undefined ? [] : [{ path }];
  const address = addressOf(toolCall.rawInput);
  const plain = command === undefined && diffs.length === 0 && address === undefined;
  return (
    <>
      {command === undefined ? null : <CodeBlock code={command} language="bash" label="Command" />}
      {address === undefined ? null : <CodeBlock code={address} language="" label="Address" />}
      {diffs.length > 0 ? null : <Locations locations={locations} cwd={cwd} />}
      {diffs.map((diff, index) => (
        <Diff key={index} diff={diff} cwd={cwd} narrow whole />
      ))}
      {texts.map((block, index) =>
        block.type === "text" ? (
          <div key={index} className={styles.prose}>
            <Markdown text={block.text} />
          </div>
        ) : (
          <Block key={index} block={block} />
        ),
      )}
      {plain && !isEmpty(toolCall.rawInput) ? (
        <CodeBlock code={asText(toolCall.rawInput ?? null)} language="json" label="Input" />
      ) : null}
    </>
  );
}
