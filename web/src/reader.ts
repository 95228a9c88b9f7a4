/**
 * What the browser shows at an address of the gateway that is no page of the chat (`/api/docs`, `/metrics`): a visit
 * sends the cookie alone, which opens nothing, so this page fetches its own address with the secret.
 */

import "./style/reader.css";
import { fetchOwn, secretAccepted, secretRefused, takeFromAddress } from "./app/login";

const COME_IN_AGAIN =
  "This browser is not logged in. Open the address that dragoman serve printed; dragoman serve --url prints it again.";

takeFromAddress();
show().catch(() =>
  document.body.replaceChildren(
    paragraph("p", "message", "The gateway does not answer. Load this page again when it runs."),
  ),
);

async function show(): Promise<void> {
  const answer = await fetchOwn(window.location.pathname + window.location.search, {
    headers: { Accept: "text/html,*/*" },
  });
  if (answer.status === 401) {
    if (secretRefused()) await show();
    else document.body.replaceChildren(paragraph("p", "message", COME_IN_AGAIN));
    return;
  }
  secretAccepted();
  const text = await answer.text();
  const isPage = answer.headers.get("content-type")?.startsWith("text/html") ?? false;
  if (isPage) await showPage(new DOMParser().parseFromString(text, "text/html"));
  else document.body.replaceChildren(paragraph("pre", "plain", text));
  document.getElementById(window.location.hash.slice(1))?.scrollIntoView();
}

async function showPage(page: Document): Promise<void> {
  const styles = await Promise.all(Array.from(page.head.querySelectorAll("link[rel=stylesheet], style"), styleText));
  document.adoptedStyleSheets = styles.map((style) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    return sheet;
  });
  document.title = page.title;
  document.body.replaceChildren(...page.body.childNodes);
}

async function styleText(element: Element): Promise<string> {
  const address = element.getAttribute("href");
  return address === null ? (element.textContent ?? "") : (await fetchOwn(address)).text();
}

function paragraph(name: string, look: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.className = look;
  made.textContent = text;
  return made;
}
