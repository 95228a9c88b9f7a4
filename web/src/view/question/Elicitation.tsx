import { type FormEvent, type ReactNode, useId, useMemo, useState } from "react";
import { useActions } from "../../model/actions";
import type { ElicitationItem } from "../../model/conversation";
import { own } from "../../model/untrusted";
import { CopyButton } from "../CopyButton";
import { Icon, Spinner } from "../icons";
import { safeAddress } from "../markdown/safety";
import { leadsToThisMachine, THIS_MACHINE_HINT } from "../thisMachine";
import { FieldView } from "./FieldView";
import { fields, initialValues, read, type Values } from "./schema";
import styles from "./Question.module.css";

/** Something that the agent wants to know: a form, or a page to visit. */
export function Elicitation({ item }: { item: ElicitationItem }) {
  return item.mode === "url" ? <Visit item={item} /> : <Form item={item} />;
}

function Frame({ item, children }: { item: ElicitationItem; children: ReactNode }) {
  const id = useId();
  return (
    <section
      className={styles.card}
      role="alertdialog"
      aria-modal="false"
      aria-labelledby={id}
      aria-describedby={`${id}m`}
      data-quiet="true"
      tabIndex={-1}
      data-question={item.requestId}
    >
      <div className={styles.head}>
        <span className={styles.mark}>
          <Icon name="question" />
        </span>
        <div className={styles.heading}>
          <span className={styles.kicker} id={id}>
            The agent asks you
          </span>
          <p className={styles.message} id={`${id}m`}>
            {item.message}
          </p>
        </div>
      </div>
      {children}
      <p className="visually-hidden" role="alert">
        The agent asks you: {item.message}
      </p>
    </section>
  );
}

function Form({ item }: { item: ElicitationItem }) {
  const actions = useActions();
  const all = useMemo(() => fields(item.schema), [item.schema]);
  const [values, setValues] = useState<Values>(() => initialValues(all));
  const [errors, setErrors] = useState<Record<string, string>>({});
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const answer = read(all, values);
    setErrors(answer.errors);
    if (Object.keys(answer.errors).length === 0) actions.answerElicitation(item.requestId, "accept", answer.content);
  };
  return (
    <Frame item={item}>
      <form onSubmit={submit} noValidate>
        <div className={styles.fields}>
          {all.map((field) => (
            <FieldView
              key={field.name}
              field={field}
              value={own(values, field.name) ?? ""}
              error={own(errors, field.name)}
              onChange={(value) => setValues({ ...values, [field.name]: value })}
            />
          ))}
        </div>
        <div className={styles.options}>
          <button type="submit" className={styles.option} data-tone="allow" disabled={item.sending}>
            {item.sending ? <Spinner /> : null}
            <span>Send</span>
          </button>
          <Refusals item={item} />
        </div>
      </form>
    </Frame>
  );
}

function Visit({ item }: { item: ElicitationItem }) {
  const actions = useActions();
  const address = safeAddress(item.url ?? "");
  return (
    <Frame item={item}>
      <div className={styles.address}>
        <code>{item.url}</code>
        <CopyButton text={item.url ?? ""} label="Copy the address" iconOnly />
      </div>
      {address !== null && leadsToThisMachine(address) ? <p className={styles.warning}>{THIS_MACHINE_HINT}</p> : null}
      <div className={styles.options}>
        {address === null ? (
          <p className={styles.warning}>This address is none that a browser should open.</p>
        ) : (
          <a
            className={styles.option}
            data-tone="allow"
            href={address}
            target="_blank"
            rel="noopener noreferrer"
            onClick={() => actions.answerElicitation(item.requestId, "accept")}
          >
            Open {hostOf(address)}
          </a>
        )}
        <Refusals item={item} />
      </div>
    </Frame>
  );
}

function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host || "it" : "it";
}

function Refusals({ item }: { item: ElicitationItem }) {
  const actions = useActions();
  return (
    <>
      <button
        type="button"
        className={styles.option}
        disabled={item.sending}
        onClick={() => actions.answerElicitation(item.requestId, "decline")}
      >
        Decline
      </button>
      <button
        type="button"
        className={styles.option}
        data-tone="quiet"
        disabled={item.sending}
        onClick={() => actions.answerElicitation(item.requestId, "cancel")}
      >
        Dismiss
      </button>
    </>
  );
}
