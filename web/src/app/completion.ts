/** What is being completed at the cursor: a command at the beginning, or a file after an @. */

export interface Wanted {
  readonly kind: "command" | "file";
  readonly word: string;
  /** Where the word begins, its mark included, and where it ends. */
  readonly from: number;
  readonly to: number;
}

export function wantedAt(text: string, cursor: number): Wanted | null {
  const before = text.slice(0, cursor);
  const command = /^\/(\S*)$/.exec(before);
  if (command !== null) return { kind: "command", word: command[1] ?? "", from: 0, to: cursor };
  const file = /(?:^|[\s(["'`])@([^\s@]*)$/.exec(before);
  if (file === null) return null;
  const word = file[1] ?? "";
  return { kind: "file", word, from: cursor - word.length - 1, to: cursor };
}

export function replaceWord(text: string, wanted: Wanted, word: string): { text: string; cursor: number } {
  const after = text.slice(wanted.to);
  const joined = text.slice(0, wanted.from) + word;
  return { text: joined + after, cursor: joined.length };
}
