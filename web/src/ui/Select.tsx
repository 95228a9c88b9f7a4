/** One of several, with what each means. */

import { Icon, type IconName } from "./Icon";
import styles from "./Menu.module.css";
import { onDemand } from "./popup";

export interface Choice {
  readonly value: string;
  readonly name: string;
  readonly hint?: string | null;
  readonly group?: string;
}

export interface SelectProps {
  label: string;
  value: string;
  choices: readonly Choice[];
  onChange(value: string): void;
  disabled?: boolean;
  icon?: IconName;
}

export function selectTrigger({ label, value, choices, disabled = false, icon }: SelectProps) {
  const shown = choices.find((choice) => choice.value === value)?.name ?? value;
  const children = (
    <>
      {icon === undefined ? null : <Icon name={icon} size={14} />}
      <span>{shown}</span>
      <Icon name="chevron" size={12} />
    </>
  );
  return { "aria-label": `${label}: ${shown}`, title: label, disabled, className: styles.trigger, children };
}

export const Select = onDemand<SelectProps>(() => import("./SelectPopup"), "listbox", selectTrigger);
