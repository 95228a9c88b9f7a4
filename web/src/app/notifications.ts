/** Notifications of the browser: through the service worker, the only way on phones, else by the page itself. */

import { keep, kept } from "./kept";
import { goTo } from "./route";

const KEY = "dragoman.notify";
const WORKER = "/worker.js";
const PLACE = /^#\/s\/[^#?]+$/;
/** Milliseconds in which a worker that was just registered is ready. */
const READY_MS = 5000;

export interface Note {
  readonly title: string;
  readonly body: string;
  /** A note with the same tag takes its place. */
  readonly tag: string;
  /** Where a touch leads to. */
  readonly place: string;
}

export function areOffered(): boolean {
  return typeof Notification !== "undefined";
}

export function areWanted(): boolean {
  return areOffered() && Notification.permission === "granted" && kept("localStorage", KEY) === "yes";
}

/** Asks the person first, where that is needed. */
export async function want(wanted: boolean): Promise<void> {
  keep("localStorage", KEY, wanted ? "yes" : null);
  if (!wanted) return;
  try {
    if (Notification.permission !== "granted") await Notification.requestPermission();
  } catch {
    return; // a browser that does not ask here: nothing is shown
  }
  if (areWanted()) await worker();
}

/** Never throws: the title of the tab says the same. */
export async function notify(note: Note): Promise<void> {
  if (!areWanted()) return;
  const options = { body: note.body, tag: note.tag, data: note.place };
  try {
    const shown = await worker();
    if (shown !== null) {
      await shown.showNotification(note.title, options);
      return;
    }
  } catch {
    // the worker may not: the page tries
  }
  try {
    const made = new Notification(note.title, options); // throws on Android
    made.onclick = () => {
      window.focus();
      goTo(note.place);
      made.close();
    };
  } catch {
    // neither may
  }
}

let registered: Promise<ServiceWorkerRegistration | null> | null = null;

/** Null where there is none: without TLS, in private windows of some browsers, where it may not be registered. */
function worker(): Promise<ServiceWorkerRegistration | null> {
  registered ??= register().catch(() => null);
  return registered;
}

async function register(): Promise<ServiceWorkerRegistration | null> {
  const { serviceWorker } = navigator;
  if (serviceWorker === undefined) return null;
  await serviceWorker.register(WORKER);
  serviceWorker.addEventListener("message", ({ data }: MessageEvent<{ type?: unknown; place?: unknown } | null>) => {
    if (data?.type === "show" && typeof data.place === "string" && PLACE.test(data.place)) goTo(data.place);
  });
  const late = new Promise<null>((done) => {
    setTimeout(() => done(null), READY_MS);
  });
  return Promise.race([serviceWorker.ready, late]);
}
