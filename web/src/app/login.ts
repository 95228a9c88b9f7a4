/**
 * The page's secret, which the gateway wants beside the cookie: browsers send cookies to every port of a host, but keep
 * this storage for our origin alone.
 *
 * It comes in the address, as `#page=…`, when a token was shown, and is taken out of there at once. One that has just
 * come is kept for this tab alone, where a page that is loaded again finds it, and for the browser only after the gateway
 * has accepted it, so that a link with a made-up one does not log the browser out.
 */

import { saveBlob } from "../view/save";
import { keep, kept } from "./kept";

const SECRET = "dragoman.page";
const ARRIVED = "dragoman.arrived";
const PLACE = "dragoman.place";
const HEADER = "X-Dragoman-Page";

const ARRIVAL = /^#page=([\w-]+)$/;

/** What has just come; the tab keeps it too, unless the browser keeps nothing. */
let arrived: string | null = kept("sessionStorage", ARRIVED);

/** Take a secret out of the address that it came in. The part after # is then what it was before the token was shown. */
export function takeFromAddress(): boolean {
  const found = ARRIVAL.exec(window.location.hash);
  if (found === null) return false;
  setArrived(found[1] ?? null);
  const place = kept("sessionStorage", PLACE) ?? "";
  keep("sessionStorage", PLACE, null);
  window.history.replaceState(null, "", window.location.pathname + window.location.search + place);
  return true;
}

export function pageSecret(): string | null {
  return arrived ?? kept("localStorage", SECRET);
}

/** The gateway has taken what `pageSecret` said. A browser that keeps nothing has it as long as the page. */
export function secretAccepted(): void {
  if (arrived === null) return;
  keep("localStorage", SECRET, arrived);
  if (kept("localStorage", SECRET) === arrived) setArrived(null);
}

/** The gateway has refused it. True when there is an older one to try. */
export function secretRefused(): boolean {
  const before = kept("localStorage", SECRET);
  const another = arrived !== null && before !== null && before !== arrived;
  setArrived(null);
  return another;
}

/** Another tab has logged in; when it has logged out, this one shows nothing any more but the login. */
export function onSecretChanged(changed: () => void): void {
  window.addEventListener("storage", (event) => {
    const out = (event.key === SECRET || event.key === null) && kept("localStorage", SECRET) === null;
    if (out && arrived === null) showLogin();
    else if (event.key === SECRET) changed();
  });
}

/** The gateway's own page with a field for the token; who logs in there comes back to this place. */
function showLogin(): void {
  keep("sessionStorage", PLACE, window.location.hash);
  window.location.replace("/");
}

/** The subprotocols of a WebSocket, which is where a page can show its secret there. */
export function subprotocols(): string[] {
  const secret = pageSecret();
  return secret === null ? [] : ["dragoman.v1", `dragoman.page.${secret}`];
}

/** `fetch` from our gateway, with the secret. */
export async function fetchOwn(path: string, options: RequestInit = {}): Promise<Response> {
  return fetch(path, { ...options, headers: { ...options.headers, [HEADER]: pageSecret() ?? "" }, cache: "no-store" });
}

/** Save what the gateway answers as a file; throws when it answers something else. A plain link would lack the secret. */
export async function download(path: string, name: string): Promise<void> {
  const answer = await fetchOwn(path);
  if (!answer.ok) {
    const said = (await answer.json().catch(() => null)) as { error?: string } | null;
    throw new Error(said?.error ?? `The gateway answered ${answer.status}.`);
  }
  saveBlob(await answer.blob(), name);
}

/** Show the token, through the address as at the first visit: the gateway makes a login of it and takes it out again. */
export function showToken(token: string): void {
  keep("sessionStorage", PLACE, window.location.hash);
  window.location.assign(`/?token=${encodeURIComponent(token.trim())}`);
}

/** End this browser's login, here and at the gateway; throws when that could not be reached. */
export async function logOut(): Promise<void> {
  const { ok, status } = await fetchOwn("/api/logout", { method: "POST" });
  if (!ok && status !== 401) throw new Error(`The gateway answered ${status}.`);
  setArrived(null);
  keep("localStorage", SECRET, null);
  window.location.replace("/");
}

function setArrived(secret: string | null): void {
  arrived = secret;
  keep("sessionStorage", ARRIVED, secret);
}
