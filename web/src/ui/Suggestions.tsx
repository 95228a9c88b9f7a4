/** What could be meant, below or above the field in which it is being typed. The field keeps the focus. */

import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Icon, type IconName } from "./Icon";
import styles from "./Suggestions.module.css";

export interface Suggestion {
  readonly key: string;
  readonly name: string;
  readonly hint?: string;
  /** What is written after it. */
  readonly argument?: string;
  readonly icon?: IconName;
}

export interface SuggestionsControl {
  readonly active: number;
  setActive(index: number): void;
  /** True when the key was for the list. */
  key(event: KeyboardEvent): boolean;
}

/** `choose` gets the suggestion and whether it was picked with Tab. */
export function useSuggestions(
  suggestions: readonly Suggestion[],
  choose: (index: number, tab: boolean) => void,
  close: () => void,
  enterChooses = true,
): SuggestionsControl {
  const [active, setActive] = useState(0);
  const shown = active < suggestions.length ? active : 0;
  const key = (event: KeyboardEvent): boolean => {
    const count = suggestions.length;
    if (count === 0 || event.nativeEvent.isComposing) return false;
    if (event.key === "ArrowDown") setActive((shown + 1) % count);
    else if (event.key === "ArrowUp") setActive((shown + count - 1) % count);
    else if (event.key === "Tab" && !event.shiftKey) choose(shown, true);
    else if (event.key === "Enter" && !event.shiftKey && enterChooses) choose(shown, false);
    else if (event.key === "Escape") close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return { active: shown, setActive, key };
}

interface Props {
  id: string;
  label: string;
  suggestions: readonly Suggestion[];
  control: SuggestionsControl;
  side: "above" | "below";
  choose(index: number): void;
}

export function Suggestions({ id, label, suggestions, control, side, choose }: Props) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.children[control.active]?.scrollIntoView({ block: "nearest" });
  }, [control.active, suggestions]);
  if (suggestions.length === 0) return null;
  return (
    <ul ref={list} id={id} role="listbox" aria-label={label} className={`${styles.list} ${styles[side]}`}>
      {suggestions.map((suggestion, index) => (
        <li
          key={suggestion.key}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === control.active}
          className={styles.option}
          onPointerMove={() => control.setActive(index)}
          onPointerDown={(event) => {
            event.preventDefault();
            choose(index);
          }}
        >
          {suggestion.icon === undefined ? null : <Icon name={suggestion.icon} size={14} />}
          <span className={styles.name}>{suggestion.name}</span>
          {suggestion.argument === undefined ? null : <span className={styles.argument}>{suggestion.argument}</span>}
          {suggestion.hint === undefined ? null : <span className={styles.hint}>{suggestion.hint}</span>}
        </li>
      ))}
    </ul>
  );
}
