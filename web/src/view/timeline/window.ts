/** Draws of a long list only what is in sight, and keeps the reader's place whatever happens around it. */

import { type MouseEvent, useCallback, useEffect, useLayoutEffect, useReducer, useRef } from "react";
import { flushSync } from "react-dom";
import { type Anchor, Heights, type Range } from "./heights";

interface Options {
  keys: readonly string[];
  guess: (index: number) => number;
  /** Asks for what comes before the first item; null when there is nothing, or it was asked already. */
  needOlder: (() => void) | null;
  /** The newest item that the reader sent: when there is another one, the view goes to the end, wherever it was. */
  own: string | null;
}

export interface Window extends Range {
  /** Room for what is not drawn. */
  readonly before: number;
  readonly after: number;
  /** The reader has left the end; so many items have come since. */
  readonly away: boolean;
  readonly unseen: number;
  readonly scroller: (element: HTMLDivElement | null) => void;
  readonly observe: (key: string, element: HTMLElement | null) => void;
  readonly jump: () => void;
  readonly clicked: (event: MouseEvent) => void;
}

/** Drawn beyond each edge of the view, so that scrolling meets no blank. */
const MORE = 900;
/** So near the end counts as being there. */
const NEAR = 32;
/** Older items are asked for this long before they are needed. */
const EARLY = 1_200;

/** What the list remembers between two drawings; it is no state, for nothing of it is drawn by itself. */
class Place {
  readonly heights = new Heights();
  readonly elements = new Map<string, HTMLElement>();
  readonly names = new WeakMap<Element, string>();
  scroller: HTMLDivElement | null = null;
  /** Follows the end. */
  stuck = true;
  anchor: Anchor | null = null;
  top = 0;
  view = typeof window === "undefined" ? 800 : window.innerHeight;
  drawn: Range = { start: 0, end: 0 };
  lastSeen: string | null = null;
  /** Own items that the view has gone to. */
  readonly followed = new Set<string>();
  /** What was first when older items were asked for, so that they are asked for once. */
  askedBefore: string | null = null;
  /** They were asked for, and came or did not. */
  settled = false;

  wanted(): Range {
    const y = this.stuck
      ? Math.max(0, this.heights.total - this.view)
      : ((this.anchor && this.heights.find(this.anchor)) ?? this.top);
    return this.heights.range(y, this.view, MORE);
  }

  /** Puts the view where the reader has it. */
  restore(): void {
    const box = this.scroller;
    if (box === null) return;
    const target = this.stuck ? box.scrollHeight - box.clientHeight : this.anchor && this.heights.find(this.anchor);
    if (target !== null && Math.abs(box.scrollTop - target) >= 1) box.scrollTop = target;
    this.top = box.scrollTop;
    // A list that does not scroll cannot be scrolled back to its end.
    if (!this.stuck && box.scrollHeight - this.top - box.clientHeight <= NEAR) this.stuck = true;
  }

  /** The reader scrolled, or we did. */
  scrolled(box: HTMLDivElement): void {
    const top = box.scrollTop;
    const left = box.scrollHeight - top - box.clientHeight;
    if (left <= NEAR) this.stuck = true;
    // Something that grows under the view moves the end away, but only a reader moves the view up.
    else if (top < this.top - 1) this.stuck = false;
    this.top = top;
    if (!this.stuck) this.anchor = this.heights.anchor(top);
  }

  /** What was drawn before counts too: the rest of a message may have come with the older ones, and it is taller now. */
  measureDrawn(): void {
    for (const [key, element] of this.elements) this.heights.measure(key, element.getBoundingClientRect().height);
  }

  covers(range: Range): boolean {
    return range.start >= this.drawn.start && range.end <= this.drawn.end;
  }

  inSight(): Range {
    return this.heights.range(this.top, this.view, 0);
  }
}

export function useWindow({ keys, guess, needOlder, own }: Options): Window {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const kept = useRef<Place | null>(null);
  kept.current ??= new Place();
  const place = kept.current;

  place.heights.arrange(keys, guess);
  if (own !== null && !place.followed.has(own)) {
    place.followed.add(own);
    place.stuck = true;
  }
  const range = place.wanted();
  place.drawn = range;
  if (place.stuck) place.lastSeen = keys.at(-1) ?? null;
  const seen = place.lastSeen === null ? -1 : (place.heights.indexOf(place.lastSeen) ?? keys.length - 1);

  const observer = useRef<ResizeObserver | null>(null);
  const observe = useCallback(
    (key: string, element: HTMLElement | null) => {
      observer.current ??= new ResizeObserver((entries) => resized(place, entries, redraw));
      const known = place.elements.get(key);
      if (known !== undefined) observer.current.unobserve(known);
      if (element === null) place.elements.delete(key);
      else {
        place.elements.set(key, element);
        place.names.set(element, key);
        observer.current.observe(element);
      }
    },
    [place],
  );

  const older = useRef(needOlder);
  if (older.current === null && needOlder !== null) place.settled = true;
  older.current = needOlder;
  const ask = useCallback(() => {
    const first = place.heights.first;
    if (older.current === null || place.top > EARLY || place.askedBefore === first) return;
    place.askedBefore = first;
    older.current();
  }, [place]);

  const scroller = useCallback(
    (box: HTMLDivElement | null) => {
      place.scroller = box;
      if (box === null) return;
      place.view = box.clientHeight;
      const scrolled = () => {
        const before = place.stuck;
        place.scrolled(box);
        if (!place.covers(place.inSight())) flushSync(redraw);
        else if (before !== place.stuck || !place.covers(place.wanted())) redraw();
        // What did not come is asked for again, but only by a reader who scrolls: not in a circle by ourselves.
        if (place.settled) place.askedBefore = null;
        place.settled = false;
        ask();
      };
      const sized = new ResizeObserver(() => {
        place.view = box.clientHeight;
        place.restore();
        if (!place.covers(place.wanted())) redraw();
      });
      box.addEventListener("scroll", scrolled, { passive: true });
      sized.observe(box);
      return () => {
        box.removeEventListener("scroll", scrolled);
        sized.disconnect();
      };
    },
    [place, ask],
  );

  // After every drawing: measure what is drawn, put the view back, and draw more if that was too little.
  useLayoutEffect(() => {
    place.measureDrawn();
    place.restore();
    if (!place.covers(place.wanted())) redraw();
  });
  useEffect(ask);
  useEffect(() => () => observer.current?.disconnect(), []);

  return {
    ...range,
    before: place.heights.top(range.start),
    after: place.heights.total - place.heights.top(range.end),
    away: !place.stuck,
    unseen: place.stuck ? 0 : Math.max(0, keys.length - 1 - seen),
    scroller,
    observe,
    jump: useCallback(() => {
      place.stuck = true;
      redraw();
    }, [place]),
    clicked: useCallback((event: MouseEvent) => holdStill(place, event), [place]),
  };
}

function resized(place: Place, entries: readonly ResizeObserverEntry[], redraw: () => void): void {
  let changed = false;
  for (const entry of entries) {
    const key = place.names.get(entry.target);
    const height = entry.borderBoxSize[0]?.blockSize ?? entry.contentRect.height;
    if (key !== undefined && entry.target.isConnected) changed = place.heights.measure(key, height) || changed;
  }
  if (!changed) return;
  place.restore();
  if (!place.covers(place.wanted())) redraw();
}

/** The user opens a card: it must open under the pointer, not be pushed away by following the end. */
function holdStill(place: Place, event: MouseEvent): void {
  if (!(event.target instanceof Element) || event.target.closest("[aria-expanded]") === null) return;
  place.stuck = false;
  place.anchor = place.heights.anchor(place.top);
}
