/** Reading what an agent sent: nothing here throws, whatever it is. */

import type { JsonValue } from "../bridge/events";

/** The entry of a table; undefined also for names that every object has, such as `constructor`. */
export function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** A text as it is, anything else as JSON: `String` throws for `{"toString": 7}`. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
