/** A number of bytes for people. */
export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${Math.round(count / 1024)} KB`;
  const size = count / 1024 / 1024;
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} MB`;
}
