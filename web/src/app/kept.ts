/** Small things that the browser keeps for us. A browser that keeps nothing (private mode, full, forbidden) is no error. */

type Place = "localStorage" | "sessionStorage";

export function keep(place: Place, key: string, value: string | null): void {
  try {
    if (value === null) window[place].removeItem(key);
    else window[place].setItem(key, value);
  } catch {
    // What was to be kept lives as long as the page. Where cookies are forbidden, the name alone throws.
  }
}

export function kept(place: Place, key: string): string | null {
  try {
    return window[place].getItem(key);
  } catch {
    return null;
  }
}
