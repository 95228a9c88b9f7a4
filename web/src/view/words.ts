/** Numbers and names as people read them. */

/** "0.4 s", "12 s", "3 min 5 s", "2 h 10 min". */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 === 0 ? `${minutes} min` : `${minutes} min ${whole % 60} s`;
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** While it runs: whole seconds, so that nothing flickers. */
export function elapsed(milliseconds: number): string {
  const seconds = Math.floor(Math.max(0, milliseconds) / 1000);
  return seconds < 60 ? `${seconds} s` : duration(seconds * 1000);
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${Math.round(count / 1024)} KB`;
  return `${(count / 1024 / 1024).toFixed(1)} MB`;
}

const NUMBERS = new Intl.NumberFormat("en");

export function grouped(count: number): string {
  return NUMBERS.format(count);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** A path as seen from the session's folder. */
export function shortPath(path: string, cwd: string | undefined): string {
  const root = cwd?.replace(/\/+$/, "");
  if (!root || !path.startsWith(`${root}/`)) return path === root ? "." : path;
  return path.slice(root.length + 1);
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

/** "10:42", in the reader's own way of writing it. */
export function clock(at: number): string {
  return CLOCK.format(at);
}
