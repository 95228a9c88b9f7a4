import type { ComponentProps } from "react";
import styles from "./Button.module.css";
import { Icon, type IconName } from "./Icon";

interface Look {
  look?: "plain" | "outline" | "primary" | "danger";
}

const LOOKS = { plain: "", outline: styles.outline, primary: styles.primary, danger: styles.danger };

export function Button({ look = "plain", className = "", ...rest }: ComponentProps<"button"> & Look) {
  return <button type="button" className={`${styles.button} ${LOOKS[look]} ${className}`} {...rest} />;
}

/** An icon alone needs its name said: `label` is both the tooltip and what a screen reader reads. */
export function IconButton({
  icon,
  label,
  look = "plain",
  className = "",
  ...rest
}: ComponentProps<"button"> & Look & { icon: IconName; label: string }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={`${styles.button} ${styles.icon} ${LOOKS[look]} ${className}`}
      {...rest}
    >
      <Icon name={icon} />
    </button>
  );
}
