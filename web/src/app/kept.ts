/** Small things that the browser keeps for us. A browser that keeps nothing (private mode, full) is no error. */

export function keep(storage: Storage, key: string, value: string | null): void {
  try {
    if (value === null) storage.removeItem(key);
    else storage.setItem(key, value);
  } catch {
    // Full or forbidden: what was to be kept lives as long as the page.
  }
}

export function kept(storage: Storage, key: string): string | null {
  try {
    return storage.getItem(key);
  } catch {
    return null;
  }
}
