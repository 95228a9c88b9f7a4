import { memo, useEffect, useState } from "react";
import { CopyButton } from "../CopyButton";
import { highlight, highlighted, languageOf } from "./highlight";
import "./colours.css";
import styles from "./Markdown.module.css";

interface Props {
  code: string;
  language: string;
  /** It still grows: colours wait until it is whole. */
  streaming?: boolean;
  /** Instead of the language: a file's name, say. */
  label?: string;
}

/** Code with its language, a copy button and, as soon as they are there, colours. */
export const CodeBlock = memo(function CodeBlock({ code, language, streaming = false, label }: Props) {
  const name = label ?? (language || "text");
  return (
    <div className={styles.code}>
      <div className={styles.codeHead}>
        <span>{name}</span>
        <CopyButton text={code} label="Copy code" />
      </div>
      <pre tabIndex={0} role="region" aria-label={`Code, ${name}`}>
        <Code code={code} language={language} streaming={streaming} />
      </pre>
    </div>
  );
});

/** The coloured text alone. */
export function Code({ code, language, streaming = false }: Omit<Props, "label">) {
  const html = useHighlight(code, language, streaming);
  if (html === null) return <code>{code}</code>;
  // biome-ignore lint/security/noDangerouslySetInnerHtml: highlight.js escapes the code that it colours
  return <code dangerouslySetInnerHTML={{ __html: html }} />;
}

export function useHighlight(code: string, language: string, wait = false): string | null {
  const [made, setMade] = useState<{ code: string; html: string | null }>({ code: "", html: null });
  useEffect(() => {
    if (wait || code === "" || languageOf(language) === null) return;
    let gone = false;
    highlight(code, language).then(
      (html) => gone || setMade({ code, html }),
      () => undefined, // Without the chunk the code stays without colours; the next block asks for it again.
    );
    return () => {
      gone = true;
    };
  }, [code, language, wait]);
  return highlighted(code, language) ?? (made.code === code ? made.html : null);
}
