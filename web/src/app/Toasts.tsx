import { Button, IconButton } from "../ui/Button";
import { useChat, usePage } from "./page";
import styles from "./Toasts.module.css";

export function Toasts() {
  const chat = useChat();
  const toasts = usePage((state) => state.toasts);
  return (
    <div className={styles.toasts} role="log" aria-live="polite" aria-label="Messages of the page">
      {toasts.map(({ id, text, tone, action }) => (
        <div key={id} className={`${styles.toast} ${tone === "error" ? styles.error : ""}`}>
          <span>{text}</span>
          {action === undefined ? null : (
            <Button
              look="outline"
              onClick={() => {
                action.run();
                chat.dismiss(id);
              }}
            >
              {action.label}
            </Button>
          )}
          <IconButton icon="close" label="Dismiss" onClick={() => chat.dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
