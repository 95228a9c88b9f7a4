import { useEffect, useState } from "react";
import { type Suggestion, Suggestions, useSuggestions } from "../ui/Suggestions";
import styles from "./NewSession.module.css";
import { useChat } from "./page";

const NONE: readonly Suggestion[] = [];

/** A folder on the gateway's machine, completed as in a shell: Tab takes a name, and then come the folders in it. */
export function FolderField({ id, value, onChange }: { id: string; value: string; onChange(folder: string): void }) {
  const chat = useChat();
  const [asked, setAsked] = useState<string | null>(null);
  const [suggestions, setSuggestions] = useState(NONE);

  useEffect(() => {
    if (asked === null) return undefined;
    let wanted = true;
    const timer = setTimeout(() => {
      void chat.paths(asked, { directories: true }).then((entries) => {
        if (!wanted) return;
        setSuggestions(entries.map(({ path, name }) => ({ key: path, name, hint: path, icon: "folder" })));
      });
    }, 60);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [chat, asked]);

  const close = () => {
    setAsked(null);
    setSuggestions(NONE);
  };
  const ask = (folder: string) => {
    onChange(folder);
    setAsked(folder);
  };
  const choose = (index: number) => {
    const chosen = suggestions[index];
    if (chosen !== undefined) ask(`${chosen.key.replace(/\/$/, "")}/`);
  };
  const control = useSuggestions(suggestions, choose, close, false);
  const listId = `${id}-suggestions`;
  const open = suggestions.length > 0;
  return (
    <div className={styles.input}>
      <input
        id={id}
        role="combobox"
        type="text"
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        value={value}
        aria-expanded={open}
        aria-autocomplete="list"
        aria-controls={listId}
        aria-activedescendant={open ? `${listId}-${control.active}` : undefined}
        onChange={(event) => ask(event.target.value)}
        onKeyDown={(event) => {
          if (control.key(event)) return;
          if (event.key === "Enter") close();
        }}
        onBlur={close}
      />
      <Suggestions
        id={listId}
        label="Folders"
        side="below"
        suggestions={suggestions}
        control={control}
        choose={choose}
      />
    </div>
  );
}
