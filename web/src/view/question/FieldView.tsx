import { useId } from "react";
import { own } from "../../model/untrusted";
import type { Field } from "./schema";
import styles from "./Question.module.css";

type Value = string | boolean | readonly string[];

interface Props {
  field: Field;
  value: Value;
  error: string | undefined;
  onChange: (value: Value) => void;
}

const INPUT_TYPES: Record<string, string> = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

/** One field of a form. */
export function FieldView({ field, value, error, onChange }: Props) {
  const id = useId();
  const described = [field.description && `${id}d`, error && `${id}e`].filter(Boolean).join(" ") || undefined;
  const common = {
    id,
    "aria-describedby": described,
    "aria-invalid": error !== undefined,
    "aria-required": field.required,
  };
  if (field.kind === "boolean") {
    return (
      <div className={styles.field}>
        <label className={styles.check}>
          <input
            type="checkbox"
            {...common}
            checked={value === true}
            onChange={(event) => onChange(event.target.checked)}
          />
          <span>{field.label}</span>
        </label>
        <Hints id={id} field={field} error={error} />
      </div>
    );
  }
  if (field.kind === "choices")
    return <Choices id={id} field={field} value={value} error={error} onChange={onChange} />;
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={styles.label}>
        {field.label}
        {field.required ? null : <span className={styles.optional}>optional</span>}
      </label>
      {field.kind === "choice" ? (
        <select
          {...common}
          className={styles.input}
          value={String(value)}
          onChange={(event) => onChange(event.target.value)}
        >
          <option value="">{field.required ? "Choose…" : "None"}</option>
          {field.options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : field.kind === "json" ? (
        <textarea
          {...common}
          className={styles.input}
          rows={3}
          spellCheck={false}
          value={String(value)}
          onChange={(event) => onChange(event.target.value)}
        />
      ) : (
        <input
          {...common}
          className={styles.input}
          type={field.kind === "text" ? (own(INPUT_TYPES, field.format) ?? "text") : "text"}
          inputMode={field.kind === "number" ? "decimal" : field.kind === "integer" ? "numeric" : undefined}
          autoComplete="off"
          value={String(value)}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
      <Hints id={id} field={field} error={error} />
    </div>
  );
}

function Choices({ id, field, value, error, onChange }: Props & { id: string }) {
  const picked = Array.isArray(value) ? (value as readonly string[]) : [];
  return (
    <fieldset className={styles.field}>
      <legend className={styles.label}>{field.label}</legend>
      {field.options.map((option) => (
        <label key={option.value} className={styles.check}>
          <input
            type="checkbox"
            checked={picked.includes(option.value)}
            onChange={(event) =>
              onChange(
                event.target.checked ? [...picked, option.value] : picked.filter((each) => each !== option.value),
              )
            }
          />
          <span>{option.label}</span>
        </label>
      ))}
      <Hints id={id} field={field} error={error} />
    </fieldset>
  );
}

function Hints({ id, field, error }: { id: string; field: Field; error: string | undefined }) {
  return (
    <>
      {field.description ? (
        <p className={styles.hint} id={`${id}d`}>
          {field.description}
        </p>
      ) : null}
      {error ? (
        <p className={styles.error} id={`${id}e`} role="alert">
          {error}
        </p>
      ) : null}
    </>
  );
}
