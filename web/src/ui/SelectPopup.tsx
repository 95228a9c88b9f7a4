import { CSPProvider } from "@base-ui/react/csp-provider";
import { Select as Base } from "@base-ui/react/select";
import { Icon } from "./Icon";
import styles from "./Menu.module.css";
import { type SelectProps, selectTrigger } from "./Select";

export default function SelectPopup(props: SelectProps) {
  const { value, choices, onChange, disabled = false } = props;
  const { disabled: _, ...trigger } = selectTrigger(props);
  return (
    <CSPProvider disableStyleElements>
      <Base.Root
        value={value}
        onValueChange={(next) => onChange(String(next))}
        disabled={disabled}
        modal={false}
        defaultOpen
      >
        <Base.Trigger {...trigger} />
        <Base.Portal>
          <Base.Positioner
            className={styles.positioner}
            sideOffset={4}
            alignItemWithTrigger={false}
            collisionPadding={8}
          >
            <Base.Popup className={styles.popup}>
              {choices.map((choice, index) => (
                <div key={choice.value} role="presentation">
                  {choice.group !== undefined && choice.group !== choices[index - 1]?.group ? (
                    <div className={styles.group} role="presentation">
                      {choice.group}
                    </div>
                  ) : null}
                  <Base.Item value={choice.value} className={styles.item}>
                    <span className={styles.words}>
                      <Base.ItemText>{choice.name}</Base.ItemText>
                      {choice.hint ? <div className={styles.hint}>{choice.hint}</div> : null}
                    </span>
                    <span className={styles.tick}>
                      <Base.ItemIndicator>
                        <Icon name="check" size={14} />
                      </Base.ItemIndicator>
                    </span>
                  </Base.Item>
                </div>
              ))}
            </Base.Popup>
          </Base.Positioner>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  );
}
