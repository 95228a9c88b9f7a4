import { CSPProvider } from "@base-ui/react/csp-provider";
import { Menu as Base } from "@base-ui/react/menu";
import { Icon } from "./Icon";
import { type MenuEntry, type MenuProps, menuTrigger } from "./Menu";
import styles from "./Menu.module.css";

export default function MenuPopup(props: MenuProps) {
  return (
    <CSPProvider disableStyleElements>
      <Base.Root defaultOpen>
        <Base.Trigger {...menuTrigger(props)} />
        <Base.Portal>
          <Base.Positioner className={styles.positioner} sideOffset={4} align="end" collisionPadding={8}>
            <Base.Popup className={styles.popup}>
              {props.entries.map((entry, index) => (
                <Entry key={entry === "separator" ? index : entry.label} entry={entry} />
              ))}
            </Base.Popup>
          </Base.Positioner>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  );
}

function Entry({ entry }: { entry: MenuEntry }) {
  if (entry === "separator") return <Base.Separator className={styles.separator} />;
  const inside = (
    <>
      <Icon name={entry.icon} /> {entry.label}
    </>
  );
  return (
    <Base.Item
      className={`${styles.item} ${entry.danger ? styles.danger : ""}`}
      disabled={entry.disabled ?? false}
      onClick={entry.run}
    >
      {inside}
    </Base.Item>
  );
}
