/** The conversation's components over made-up events, driven from outside through `window.bench`. */

import "../src/style/tokens.css";
import "../src/style/page.css";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import type { JournalEvent } from "../src/bridge/events";
import type { Conversation } from "../src/model/conversation";
import { perFrame } from "../src/model/frame";
import { withOlder } from "../src/model/history";
import { applyEvents, emptyConversation } from "../src/model/reducer";
import { Page } from "./Page";
import { type Bare, conversation as synthetic, endless, Journal, SESSION } from "./synthetic";

const root = createRoot(document.getElementById("root") as HTMLElement);
let journal = new Journal();
let shown: Conversation = emptyConversation(SESSION);
let held: JournalEvent[] = [];
let cleared = 0;
const asked: unknown[][] = [];

function draw(): void {
  root.render(
    <Page key={cleared} conversation={shown} hasOlder={held.length > 0} asked={asked} loadOlder={loadOlder} />,
  );
}

const receive = perFrame((events: JournalEvent[]) => {
  shown = applyEvents(shown, events);
  draw();
});

function loadOlder(): void {
  setTimeout(() => {
    const page = held.slice(-400);
    held = held.slice(0, -400);
    shown = withOlder(shown, page);
    draw();
  }, 30);
}

const painted = () => new Promise<void>((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));

/** Counts long tasks until it is stopped. */
function watchLongTasks(): () => number[] {
  const long: number[] = [];
  const observer = new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration)));
  observer.observe({ entryTypes: ["longtask"] });
  return () => {
    long.push(...observer.takeRecords().map((entry) => entry.duration));
    observer.disconnect();
    return long;
  };
}

const bench = {
  asked,

  /** Puts events after those that are there. */
  add(events: Bare[], step?: number): void {
    for (const event of journal.add(events, step)) receive(event);
  },

  clear(): void {
    cleared += 1;
    journal = new Journal();
    shown = { ...emptyConversation(SESSION), caughtUp: true };
    held = [];
    asked.length = 0;
    draw();
  },

  /** Only the last `tail` of so many events; the others can be paged in. */
  history(events: number, tail: number): void {
    bench.clear();
    const all = synthetic(journal, events);
    held = all.slice(0, -tail);
    shown = { ...applyEvents(shown, all.slice(-tail)), caughtUp: true };
    draw();
  },

  /** Milliseconds from the events to what they look like, and how many of them went into the model. */
  open(events: number): Promise<{ total: number; model: number }> {
    return bench.openTail(events, events);
  },

  /** As the app does it: the last events of a long session, the others when somebody scrolls up to them. */
  async openTail(events: number, tail: number): Promise<{ total: number; model: number }> {
    flushSync(() => bench.clear());
    const journaled = synthetic(journal, events);
    const all = journaled.slice(-tail);
    held = journaled.slice(0, -tail);
    await painted();
    const started = performance.now();
    shown = { ...applyEvents(shown, all), caughtUp: true };
    const model = performance.now() - started;
    flushSync(draw);
    await painted();
    return { total: performance.now() - started, model };
  },

  /** Scrolls up by so many pixels a frame; the frames that took longer than two of a 60 Hz screen. */
  async scroll(frames: number, step: number): Promise<{ frames: number; slow: number; longTasks: number[] }> {
    const box = document.querySelector('[role="feed"]') as HTMLElement;
    const stop = watchLongTasks();
    let slow = 0;
    let last = performance.now();
    for (let frame = 0; frame < frames; frame++) {
      box.scrollTop -= step;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      if (now - last > 34) slow += 1;
      last = now;
    }
    return { frames, slow, longTasks: stop() };
  },

  /** Streams chunks of one message at a rate; the long tasks that it caused. */
  async stream(rate: number, seconds: number): Promise<{ sent: number; seconds: number; longTasks: number[] }> {
    const text = endless();
    // What drawing the conversation before has started (chunks, colours) is not what is measured.
    await new Promise((resolve) => requestIdleCallback(resolve, { timeout: 3_000 }));
    const stop = watchLongTasks();
    const started = performance.now();
    let sent = 0;
    while (performance.now() - started < seconds * 1000) {
      const due = Math.floor(((performance.now() - started) / 1000) * rate);
      for (; sent < due; sent++)
        bench.add([
          sent % 600 === 599
            ? { type: "turn_complete", stopReason: "end_turn" }
            : { type: "message_chunk", content: text.next().value as string },
        ]);
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    await painted();
    return { sent, seconds, longTasks: stop() };
  },
};

declare global {
  interface Window {
    bench: typeof bench;
  }
}

window.bench = bench;
bench.clear();
