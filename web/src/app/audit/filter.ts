/** What the audit's page shows: the filters stand in its address, so that they can be linked to. */

export interface Filter {
  readonly session?: string;
  readonly agent?: string;
  readonly tool?: string;
  readonly call?: string;
  readonly decision?: string;
  readonly by?: string;
  readonly kind?: string;
  readonly since?: string;
  readonly until?: string;
  readonly unmediated?: string;
}

export type FilterName = keyof Filter;

export const NAMES: readonly FilterName[] = [
  "session",
  "agent",
  "tool",
  "call",
  "decision",
  "by",
  "kind",
  "since",
  "until",
  "unmediated",
];

export const AUDIT = "#/audit";

export function auditAddress(filter: Filter): string {
  const query = queryOf(filter);
  return query === "" ? AUDIT : `${AUDIT}?${query}`;
}

/** The filters in an address; what else stands there is ignored. */
export function filterOf(hash: string): Filter {
  const given = new URLSearchParams(hash.split("?").slice(1).join("?"));
  const found = NAMES.flatMap((name) => {
    const value = given.get(name) ?? "";
    return value === "" ? [] : [[name, value]];
  });
  return Object.fromEntries(found) as Filter;
}

/** As the gateway takes them. */
export function queryOf(filter: Filter, more: Record<string, string> = {}): string {
  const query = new URLSearchParams();
  for (const name of NAMES) if (filter[name]) query.set(name, filter[name]);
  for (const [name, value] of Object.entries(more)) if (value !== "") query.set(name, value);
  return query.toString();
}

/** A filter with one value changed; an empty one is none. */
export function changed(filter: Filter, changes: Filter): Filter {
  return Object.fromEntries(Object.entries({ ...filter, ...changes }).filter(([, value]) => value)) as Filter;
}

/** A time as `<input type="datetime-local">` has it; empty for what is none. */
export function asLocal(stamp: string | undefined): string {
  const at = new Date(stamp ?? "");
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function fromLocal(value: string): string {
  const at = new Date(value);
  return value === "" || Number.isNaN(at.getTime()) ? "" : at.toISOString();
}
