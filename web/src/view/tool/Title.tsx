/** A tool's title. Agents write `code` in it, and whole paths that begin with the session's folder. */
export function Title({ text, cwd }: { text: string; cwd?: string | undefined }) {
  const root = cwd?.replace(/\/+$/, "");
  const short = root ? text.replaceAll(`${root}/`, "") : text;
  const parts = short.split("`");
  if (parts.length < 3 || parts.length % 2 === 0) return short;
  return parts.map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
