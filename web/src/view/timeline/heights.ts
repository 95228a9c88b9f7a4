/**
 * How tall every item of a long list is, measured or guessed, and where it therefore stands.
 *
 * Heights belong to keys, so they survive older items being put in front and items scrolled out and in again.
 */

export interface Range {
  readonly start: number;
  readonly end: number;
}

/** A place that a reader looks at: an item, and how far its top is above the upper edge of the view. */
export interface Anchor {
  readonly key: string;
  readonly offset: number;
}

export class Heights {
  private measured = new Map<string, number>();
  private keys: readonly string[] = [];
  private guess: (index: number) => number = () => 0;
  /** tops[i] is where item i begins; tops[n] is the height of all. */
  private tops = new Float64Array(1);
  private validUntil = 0;
  private places = new Map<string, number>();

  /** The list as it is now. `guess` says how tall an item may be that was not measured. */
  arrange(keys: readonly string[], guess: (index: number) => number): void {
    this.guess = guess;
    const common = sharedStart(this.keys, keys);
    if (this.tops.length < keys.length + 1) {
      const grown = new Float64Array(Math.max(64, Math.ceil((keys.length + 1) * 1.5)));
      grown.set(this.tops);
      this.tops = grown;
    }
    if (common < this.keys.length) {
      this.places.clear();
      keys.forEach((key, index) => {
        this.places.set(key, index);
      });
    } else {
      for (let index = common; index < keys.length; index++) this.places.set(keys[index] as string, index);
    }
    this.validUntil = Math.min(this.validUntil, common);
    this.keys = keys;
  }

  /** True when the item's height is new or another one. */
  measure(key: string, height: number): boolean {
    const before = this.measured.get(key);
    if (before !== undefined && Math.abs(before - height) < 0.5) return false;
    this.measured.set(key, height);
    const index = this.places.get(key);
    if (index !== undefined) this.validUntil = Math.min(this.validUntil, index);
    return true;
  }

  top(index: number): number {
    this.reckon(index);
    return this.tops[index] ?? 0;
  }

  get total(): number {
    return this.top(this.keys.length);
  }

  get first(): string | null {
    return this.keys[0] ?? null;
  }

  indexOf(key: string): number | undefined {
    return this.places.get(key);
  }

  /** The item at a height from the top; the last one for what lies beyond. */
  at(y: number): number {
    this.reckon(this.keys.length);
    let low = 0;
    let high = this.keys.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.tops[middle] ?? 0) <= y) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** What to draw so that the view from `y` is filled, with some more at both ends. */
  range(y: number, view: number, more: number): Range {
    if (this.keys.length === 0) return { start: 0, end: 0 };
    return { start: this.at(Math.max(0, y - more)), end: Math.min(this.keys.length, this.at(y + view + more) + 1) };
  }

  anchor(y: number): Anchor | null {
    if (this.keys.length === 0) return null;
    const index = this.at(y);
    return { key: this.keys[index] as string, offset: y - this.top(index) };
  }

  /** Where to scroll so that the anchor is where it was; null when its item is gone. */
  find(anchor: Anchor): number | null {
    const index = this.places.get(anchor.key);
    return index === undefined ? null : this.top(index) + anchor.offset;
  }

  private reckon(until: number): void {
    for (let index = this.validUntil; index < until; index++) {
      const height = this.measured.get(this.keys[index] as string) ?? this.guess(index);
      this.tops[index + 1] = (this.tops[index] ?? 0) + height;
    }
    if (until > this.validUntil) this.validUntil = until;
  }
}

function sharedStart(a: readonly string[], b: readonly string[]): number {
  const shorter = Math.min(a.length, b.length);
  let index = 0;
  while (index < shorter && a[index] === b[index]) index++;
  return index;
}
