import { useEffect, useState } from "react";
import type { Command } from "../bridge/events";
import type { Suggestion } from "../ui/Suggestions";
import { type Wanted, wantedAt } from "./completion";
import { useChat } from "./page";

export interface Completion {
  readonly wanted: Wanted | null;
  readonly suggestions: readonly (Suggestion & { readonly path?: string; readonly directory?: boolean })[];
  close(): void;
}

const NONE: Completion["suggestions"] = [];

export function useCompletion(
  sessionId: string,
  cwd: string,
  text: string,
  cursor: number,
  commands: readonly Command[],
): Completion {
  const chat = useChat();
  const [files, setFiles] = useState<{ word: string; suggestions: Completion["suggestions"] }>({
    word: "",
    suggestions: NONE,
  });
  const [closedFor, setClosedFor] = useState<string | null>(null);
  const wanted = wantedAt(text, cursor);
  const fileWord = wanted?.kind === "file" ? wanted.word : null;

  useEffect(() => {
    if (fileWord === null) return undefined;
    let wantedStill = true;
    const timer = setTimeout(() => {
      void chat.paths(fileWord, { sessionId }).then((entries) => {
        if (!wantedStill) return;
        const root = `${cwd.replace(/\/$/, "")}/`;
        const suggestions = entries.slice(0, 50).map(({ path, name, directory }) => {
          const short = path.startsWith(root) ? path.slice(root.length) : path;
          const icon = directory ? ("folder" as const) : ("file" as const);
          return {
            key: path,
            name: directory ? `${name}/` : name,
            path: short,
            directory,
            icon,
            ...(short === name ? {} : { hint: short }),
          };
        });
        setFiles({ word: fileWord, suggestions });
      });
    }, 60);
    return () => {
      wantedStill = false;
      clearTimeout(timer);
    };
  }, [chat, sessionId, cwd, fileWord]);

  const here = wanted === null ? "" : `${wanted.kind}${wanted.from}`;
  const close = () => setClosedFor(here);
  if (wanted === null || closedFor === here) return { wanted: null, suggestions: NONE, close };
  if (wanted.kind === "file") return { wanted, suggestions: files.suggestions, close };
  return { wanted, suggestions: matching(commands, wanted.word), close };
}

/** Commands by their beginning, then by what is in them. */
export function matching(commands: readonly Command[], word: string): Completion["suggestions"] {
  const low = word.toLowerCase();
  const rank = (name: string) => (name.toLowerCase().startsWith(low) ? 0 : name.toLowerCase().includes(low) ? 1 : 2);
  return commands
    .filter((command) => rank(command.name) < 2)
    .sort((one, other) => rank(one.name) - rank(other.name))
    .map((command) => ({
      key: command.name,
      name: `/${command.name}`,
      hint: command.description,
      ...(command.input?.hint ? { argument: command.input.hint } : {}),
    }));
}
