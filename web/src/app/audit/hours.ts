/** Counts of hours as bars: of an hour, a day or a month, whatever is fine enough for the time that is shown. */

export interface Tally {
  readonly records: number;
  readonly denied: number;
  readonly unmediated: number;
}

/** By the hour in UTC, such as `2026-11-18T03`. */
export type Hours = ReadonlyMap<string, Tally>;

export type Unit = "hour" | "day" | "month";

export interface Bar extends Tally {
  readonly since: Date;
  readonly until: Date;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** The longest time of which hours, or days, are shown. */
const MOST_HOURS = 3 * DAY;
const MOST_DAYS = 120 * DAY;
/** Bars that are drawn: what is older is added to the first. */
export const MOST_BARS = 160;

export const NOTHING: Tally = { records: 0, denied: 0, unmediated: 0 };

export function added(hours: Hours, more: Readonly<Record<string, Tally>>): Hours {
  const all = new Map(hours);
  for (const [hour, tally] of Object.entries(more)) all.set(hour, sum(all.get(hour) ?? NOTHING, tally));
  return all;
}

export function total(hours: Hours): Tally {
  return [...hours.values()].reduce(sum, NOTHING);
}

export function barsOf(hours: Hours): { unit: Unit; bars: Bar[] } {
  const told = [...hours]
    .map(([hour, tally]) => ({ at: new Date(`${hour}:00:00Z`), tally }))
    .filter(({ at }) => !Number.isNaN(at.getTime()))
    .sort((one, other) => one.at.getTime() - other.at.getTime());
  const first = told[0];
  const last = told.at(-1);
  if (first === undefined || last === undefined) return { unit: "hour", bars: [] };
  const span = last.at.getTime() - first.at.getTime();
  const unit = span < MOST_HOURS ? "hour" : span < MOST_DAYS ? "day" : "month";
  const bars: Bar[] = [];
  for (let since = start(last.at, unit); bars.length < MOST_BARS; since = start(new Date(since.getTime() - 1), unit)) {
    bars.unshift({ since, until: next(since, unit), ...NOTHING });
    if (since <= first.at) break;
  }
  const places = new Map(bars.map((bar, index) => [bar.since.getTime(), index]));
  for (const { at, tally } of told) {
    const place = places.get(start(at, unit).getTime()) ?? 0;
    const bar = bars[place];
    if (bar !== undefined) bars[place] = { ...bar, ...sum(bar, tally) };
  }
  return { unit, bars };
}

/** When the hour, day or month of a time began here. */
function start(at: Date, unit: Unit): Date {
  if (unit === "hour") return new Date(Math.floor(at.getTime() / HOUR) * HOUR);
  return unit === "day"
    ? new Date(at.getFullYear(), at.getMonth(), at.getDate())
    : new Date(at.getFullYear(), at.getMonth(), 1);
}

function next(since: Date, unit: Unit): Date {
  if (unit === "hour") return new Date(since.getTime() + HOUR);
  return unit === "day"
    ? new Date(since.getFullYear(), since.getMonth(), since.getDate() + 1)
    : new Date(since.getFullYear(), since.getMonth() + 1, 1);
}

function sum(one: Tally, other: Tally): Tally {
  return {
    records: one.records + other.records,
    denied: one.denied + other.denied,
    unmediated: one.unmediated + other.unmediated,
  };
}

// Made once: each takes longer than all bars together.
const FORMS: Record<Unit, Intl.DateTimeFormat> = {
  hour: new Intl.DateTimeFormat(undefined, {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }),
  day: new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" }),
  month: new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" }),
};

export function barName({ since }: Bar, unit: Unit): string {
  return FORMS[unit].format(since);
}

/** "120 records, 3 denied" */
export function words({ records, denied, unmediated }: Tally): string {
  const parts = [`${records.toLocaleString()} ${records === 1 ? "record" : "records"}`];
  if (denied > 0) parts.push(`${denied.toLocaleString()} denied`);
  if (unmediated > 0) parts.push(`${unmediated.toLocaleString()} unmediated`);
  return parts.join(", ");
}
