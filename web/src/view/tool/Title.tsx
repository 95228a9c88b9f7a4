import { Fragment, type ReactNode } from "react";

/** A tool's title, or the name of an answer. Agents write `code` in it, and whole paths that begin with the session's folder. */
export function Title({ text, cwd }: { text: string; cwd?: string | undefined }): ReactNode {
  const root = cwd?.replace(/\/+$/, "");
  const parts = split(root ? text.replaceAll(`${root}/`, "") : text);
  if (parts.length === 1 && !parts[0]?.code) return parts[0]?.text ?? "";
  return parts.map(({ text: part, code }, index) =>
    code ? <code key={index}>{part}</code> : <Fragment key={index}>{part}</Fragment>,
  );
}

/** The same as plain words, for what cannot be marked up. */
export function plainTitle(text: string): string {
  return split(text)
    .map((part) => part.text)
    .join("");
}

/** As Markdown has it: as many backticks at the end as at the beginning. Code whose end was cut off goes to the end. */
function split(text: string): { text: string; code: boolean }[] {
  const parts: { text: string; code: boolean }[] = [];
  const add = (part: string, code: boolean) => {
    if (part !== "") parts.push({ text: part, code });
  };
  let done = 0;
  for (const { 0: whole, 1: ticks = "", 2: code = "", index } of text.matchAll(
    /(?<!`)(`+)(?!`)(.+?)(?:(?<!`)\1(?!`)|$)/gs,
  )) {
    add(text.slice(done, index), false);
    add(ticks.length > 1 ? code.trim() : code, true);
    done = index + whole.length;
  }
  add(text.slice(done), false);
  return parts;
}
