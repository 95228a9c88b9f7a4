import { useCallback, useRef, useState } from "react";

// Neighbours are as wide as each other: what one measured is the next one's first guess, which spares a second drawing.
let latest = 0;

/** An element's width as it changes; 0 until any is known. Rounded, so that a scrollbar's flicker redraws nothing. */
export function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [width, setWidth] = useState(latest);
  const observer = useRef<ResizeObserver | null>(null);
  const ref = useCallback((element: HTMLElement | null) => {
    observer.current?.disconnect();
    if (element === null) return;
    observer.current = new ResizeObserver(([entry]) => {
      latest = Math.round((entry?.contentRect.width ?? 0) / 10) * 10;
      setWidth(latest);
    });
    observer.current.observe(element);
  }, []);
  return [ref, width];
}
