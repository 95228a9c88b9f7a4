/** Times as people say them. */

const MINUTE = 60_000;
const STEPS: readonly [number, string][] = [
  [365 * 24 * 60, "y"],
  [30 * 24 * 60, "mo"],
  [7 * 24 * 60, "w"],
  [24 * 60, "d"],
  [60, "h"],
  [1, "m"],
];

export function ago(timestamp: string, now = Date.now()): string {
  const minutes = Math.floor((now - Date.parse(timestamp)) / MINUTE);
  for (const [size, letter] of STEPS) {
    if (minutes >= size) return `${Math.floor(minutes / size)}${letter}`;
  }
  return "now";
}
