import { describe, expect, test } from "vitest";
import { added, barsOf, MOST_BARS, type Tally, total, words } from "../../../src/app/audit/hours";

const tally = (records: number, denied = 0): Tally => ({ records, denied, unmediated: 0 });

function hoursFrom(start: string, counts: readonly number[], step: number) {
  const first = Date.parse(start);
  return new Map(
    counts.map((count, index) => [new Date(first + index * step).toISOString().slice(0, 13), tally(count)]),
  );
}

const HOUR = 3_600_000;

describe("bars", () => {
  test("are hours when the time is short, empty ones between too", () => {
    const { unit, bars } = barsOf(hoursFrom("2026-11-18T00:00:00Z", [1, 2, 3], 5 * HOUR));
    expect(unit).toBe("hour");
    expect(bars).toHaveLength(11);
    expect(bars.map(({ records }) => records)).toEqual([1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3]);
    expect(bars[0]?.until.getTime()).toBe(bars[1]?.since.getTime());
  });

  test("are days, then months, and never too many", () => {
    expect(barsOf(hoursFrom("2026-01-01T00:00:00Z", [1, 1], 30 * 24 * HOUR)).unit).toBe("day");
    const years = hoursFrom("1990-01-01T12:00:00Z", [5, ...Array(400).fill(1)], 30 * 24 * HOUR);
    const { unit, bars } = barsOf(years);
    expect(unit).toBe("month");
    expect(bars.length).toBe(MOST_BARS);
    expect(bars.reduce((sum, { records }) => sum + records, 0)).toBe(405);
  });

  test("of what is no time, or of nothing, are none", () => {
    expect(barsOf(new Map([["soon", tally(1)]])).bars).toEqual([]);
    expect(barsOf(new Map()).bars).toEqual([]);
  });
});

test("what each file adds is summed", () => {
  const once = added(new Map(), { "2026-11-18T03": tally(2, 1) });
  const twice = added(once, { "2026-11-18T03": tally(3), "2026-11-18T04": tally(1) });
  expect(total(twice)).toEqual(tally(6, 1));
  expect(words(total(twice))).toBe("6 records, 1 denied");
});
