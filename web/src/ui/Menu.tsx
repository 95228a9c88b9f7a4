/** A button with a list of things to do. */

import type { ReactNode } from "react";
import button from "./Button.module.css";
import type { IconName } from "./Icon";
import { onDemand } from "./popup";

export type MenuEntry =
  | { label: string; icon: IconName; run(): void; danger?: boolean; disabled?: boolean }
  | "separator";

export interface MenuProps {
  label: string;
  entries: readonly MenuEntry[];
  children: ReactNode;
  className?: string;
}

export function menuTrigger({ label, children, className = "" }: MenuProps) {
  return { "aria-label": label, title: label, children, className: `${button.button} ${button.icon} ${className}` };
}

export const Menu = onDemand<MenuProps>(() => import("./MenuPopup"), "menu", menuTrigger);
