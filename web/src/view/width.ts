import { useCallback, useRef, useState } from "react";

/** An element's width as it changes; 0 until it is known. Rounded, so that a scrollbar's flicker redraws nothing. */
export function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [width, setWidth] = useState(0);
  const observer = useRef<ResizeObserver | null>(null);
  const ref = useCallback((element: HTMLElement | null) => {
    observer.current?.disconnect();
    if (element === null) return;
    setWidth(Math.round(element.clientWidth / 10) * 10);
    observer.current = new ResizeObserver(() => setWidth(Math.round(element.clientWidth / 10) * 10));
    observer.current.observe(element);
  }, []);
  return [ref, width];
}
