/**
 * Collects what happens until the next frame, so that hundreds of events a second are sixty updates of the page.
 * A hidden page gets no frames, so a timer stands by.
 */

const LATEST = 250;

export function perFrame<T>(flush: (batch: T[]) => void): (value: T) => void {
  let batch: T[] = [];
  let frame = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = () => {
    if (typeof cancelAnimationFrame !== "undefined") cancelAnimationFrame(frame);
    clearTimeout(timer);
    const values = batch;
    batch = [];
    flush(values);
  };
  return (value) => {
    batch.push(value);
    if (batch.length > 1) return;
    if (typeof requestAnimationFrame !== "undefined") frame = requestAnimationFrame(run);
    timer = setTimeout(run, LATEST);
  };
}
