/** The entry of a table; undefined also for names that every object has, such as `constructor`: an agent may send them. */
export function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
