/**
 * Shows the page's notifications, which phones take from a service worker alone, and brings its session to the front when
 * one is touched. It handles no requests and keeps nothing.
 */

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(String(event.notification.data ?? "#/")));
});

/** `place` is the part of the address after the path, such as `#/s/ID`. */
async function show(place) {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page =
    pages.find((each) => new URL(each.url).hash === place) ?? pages.find((each) => new URL(each.url).pathname === "/");
  if (page === undefined) {
    await self.clients.openWindow(`/${place}`);
    return;
  }
  page.postMessage({ type: "show", place });
  await page.focus();
}
