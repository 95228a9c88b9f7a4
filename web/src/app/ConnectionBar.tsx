import { useEffect, useState } from "react";
import { Button } from "../ui/Button";
import styles from "./ConnectionBar.module.css";
import { pageSecret, showToken } from "./login";
import { useChat, usePage } from "./page";

/** Only says something when something is wrong; it is there all the time, so that screen readers announce what comes. */
export function ConnectionBar() {
  return (
    <div role="status" aria-live="polite">
      <Trouble />
    </div>
  );
}

/** Shorter interruptions are not shown: a server restart takes a second. */
const PATIENCE = 700;

function Trouble() {
  const chat = useChat();
  const status = usePage((state) => state.status);
  const known = usePage((state) => state.hello !== null);
  const late = useLate(status.state === "connecting" || status.state === "waiting" || status.state === "stopped");
  const typed = useState(""); // here, because another try to connect takes the form away for a moment
  if (status.state === "unauthorized") return <TokenNeeded typed={typed} />;
  if (!late) return null;
  const unsent =
    status.unsent === 0
      ? ""
      : status.unsent === 1
        ? " 1 message waits to be sent."
        : ` ${status.unsent} messages wait to be sent.`;
  return (
    <div className={styles.bar}>
      <span>
        {known ? "The connection to the gateway is lost. Reconnecting…" : "Connecting to the gateway…"}
        {unsent}
      </span>
      {status.state === "waiting" ? (
        <Button look="outline" onClick={() => chat.client.retry()}>
          Try now
        </Button>
      ) : null}
    </div>
  );
}

function useLate(trouble: boolean): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    if (!trouble) {
      setLate(false);
      return undefined;
    }
    const timer = setTimeout(() => setLate(true), PATIENCE);
    return () => clearTimeout(timer);
  }, [trouble]);
  return late && trouble;
}

function TokenNeeded({ typed: [token, setToken] }: { typed: [string, (token: string) => void] }) {
  const reason = pageSecret() === null ? "This browser is not logged in." : "The token is not valid any more.";
  return (
    <div className={`${styles.bar} ${styles.bad}`}>
      <span>
        {reason} Open the address that <code>dragoman serve</code> printed (<code>dragoman serve --url</code> prints it
        again), or enter the token. What you typed is kept.
      </span>
      <form
        action="/"
        method="get"
        onSubmit={(event) => {
          event.preventDefault();
          showToken(token);
        }}
      >
        <input
          type="password"
          aria-label="Token"
          autoComplete="off"
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        <Button look="outline" type="submit" disabled={token.trim() === ""}>
          Enter
        </Button>
      </form>
    </div>
  );
}
