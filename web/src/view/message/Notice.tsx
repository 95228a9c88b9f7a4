import { memo } from "react";
import type { JsonValue } from "../../bridge/events";
import type { MarkerItem, NoticeItem, TurnEndItem, UnknownItem } from "../../model/conversation";
import { Fold } from "../Fold";
import { Icon } from "../icons";
import { CodeBlock } from "../markdown/CodeBlock";
import { duration } from "../words";
import { endOf } from "./ends";
import styles from "./Message.module.css";

/** Something that the gateway has to say. */
export const Notice = memo(function Notice({ item }: { item: NoticeItem }) {
  return (
    <div role="group" className={styles.notice} data-severity={item.severity} aria-label={`Notice, ${item.severity}`}>
      <Icon name={item.severity === "info" ? "info" : "warning"} />
      <div>
        <p>{item.title}</p>
        {item.detail === null ? null : <p className={styles.detail}>{item.detail}</p>}
      </div>
    </div>
  );
});

export const Marker = memo(function Marker({ item }: { item: MarkerItem }) {
  return (
    <p className={styles.marker}>
      <span>{item.text}</span>
    </p>
  );
});

/** How a turn ended. One that ended as it should shows only how long it took. */
export const TurnEnd = memo(function TurnEnd({ item }: { item: TurnEndItem }) {
  const end = endOf(item);
  if (end === null) {
    return item.duration < 1000 ? (
      <div className={styles.rest} />
    ) : (
      <p className={styles.rest}>{duration(item.duration)}</p>
    );
  }
  return (
    <div role="group" className={styles.notice} data-severity={end.severity} aria-label="End of the turn">
      <Icon name={end.severity === "info" ? "stopped" : "warning"} />
      <div>
        <p>{end.title}</p>
        {end.hint === null ? null : <p className={styles.detail}>{end.hint}</p>}
      </div>
    </div>
  );
});

/** An event that this page has no drawing for: shown as what it is. */
export const Unknown = memo(function Unknown({ item }: { item: UnknownItem }) {
  return (
    <div role="group" className={styles.unknown} aria-label="Unknown event">
      <Fold
        name={item.key}
        label={
          <>
            <Icon name="unknown" /> <span>{nameOf(item)}</span>{" "}
            <span className={styles.faint}>not known to this page</span>
          </>
        }
      >
        {() => <CodeBlock code={json(item.raw)} language="json" />}
      </Fold>
    </div>
  );
});

/** ACP's own name of the update, when the bridge had none for it. */
function nameOf({ type, raw }: UnknownItem): string {
  const update = raw !== null && typeof raw === "object" && !Array.isArray(raw) ? raw.sessionUpdate : undefined;
  return typeof update === "string" && update !== "" ? update : type || "An event without a name";
}

function json(value: JsonValue): string {
  return JSON.stringify(value, null, 2) ?? "undefined";
}
