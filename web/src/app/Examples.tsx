import styles from "./Examples.module.css";

const EXAMPLES = ["/help", "/read README.md", "/run ls"];

/** What to write to an agent that has no language model, and how to give it one. */
export function Examples({ pick }: { pick(text: string): void }) {
  return (
    <div className={styles.examples} role="group" aria-label="Examples">
      <p>This agent has no language model yet. It answers commands:</p>
      <div>
        {EXAMPLES.map((text) => (
          <button key={text} type="button" onClick={() => pick(text)}>
            {text}
          </button>
        ))}
      </div>
      <p>
        How to give it a model:{" "}
        <button type="button" onClick={() => pick("/model")}>
          /model
        </button>
      </p>
    </div>
  );
}
