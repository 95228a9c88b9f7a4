import "./style/tokens.css";
import "./style/page.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import {
  fetchOwn,
  onSecretChanged,
  pageSecret,
  secretAccepted,
  secretRefused,
  subprotocols,
  takeFromAddress,
} from "./app/login";
import { applyTheme } from "./app/theme";
import { BridgeClient } from "./bridge/client";
import { Chat } from "./model/chat";
import { createPageStore } from "./model/store";
import { Boundary } from "./view/Boundary";
import { loadParts } from "./view/parts";

takeFromAddress();
applyTheme();
measureScrollbar();

const address = new URL("/bridge", window.location.href);
address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
address.hash = "";

const client = new BridgeClient(address.href, {
  keeper: storage(),
  protocols: subprotocols,
  isUnauthorized: async () => pageSecret() === null || ((await askLoggedIn()).status === 401 && !secretRefused()),
});
const chat = new Chat(client, createPageStore());
client.watch(() => {
  if (client.status.state === "open") secretAccepted();
});
const ready = client.watch(() => {
  if (client.status.state !== "open") return;
  ready();
  if ("requestIdleCallback" in window) window.requestIdleCallback(() => void loadParts());
  else setTimeout(() => void loadParts(), 1000);
});
client.start();

// Each answer lets the browser keep its cookie for another month; an open socket alone would not.
setInterval(
  () => {
    if (client.status.state === "open") askLoggedIn().catch(() => undefined);
  },
  12 * 3600 * 1000,
);
onSecretChanged(() => client.retry());
window.addEventListener("hashchange", () => {
  if (takeFromAddress()) client.retry();
});

// A laptop that slept, a phone that was in a pocket: ask at once instead of waiting for the next silence to be noticed.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") client.check();
});
window.addEventListener("online", () => client.check());
window.addEventListener("pagehide", () => chat.leavePage());
window.addEventListener("beforeunload", (event) => {
  if (client.fragile) event.preventDefault();
});

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <Boundary what="The page">
        <App chat={chat} />
      </Boundary>
    </StrictMode>,
  );
}

function askLoggedIn(): Promise<Response> {
  return fetchOwn("/api/agents", { method: "HEAD" });
}

function storage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null; // the browser keeps nothing for this page
  }
}

/** What stands below the timeline leaves the same room as its scrollbar takes, so that both are in line. */
function measureScrollbar(): void {
  const probe = document.createElement("div");
  probe.className = "scrollbar-probe";
  document.body.append(probe);
  document.documentElement.style.setProperty("--scrollbar", `${probe.offsetWidth - probe.clientWidth}px`);
  probe.remove();
}
