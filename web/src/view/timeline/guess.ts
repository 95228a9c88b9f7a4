import type { Item } from "../../model/conversation";

const LINE = 23;
const LINE_LENGTH = 95;

const KINDS: Record<Item["kind"], number> = {
  user: 80,
  agent: 60,
  thought: 32,
  tool: 40,
  permission: 34,
  elicitation: 34,
  notice: 60,
  marker: 34,
  turn_end: 40,
  unknown: 40,
};

/** How tall an item may be before it has ever been drawn. It need not be right, only near on average. */
export function guessHeight(item: Item): number {
  const base = KINDS[item.kind] ?? 40;
  if (item.kind === "agent") {
    const length = item.parts.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 400), 0);
    return base + Math.min(1_600, Math.floor(length / LINE_LENGTH) * LINE);
  }
  if (item.kind === "user") {
    return (
      base +
      item.content.reduce(
        (sum, part) =>
          sum + (part.type === "text" ? Math.min(500, Math.floor(part.text.length / LINE_LENGTH) * LINE) : 60),
        0,
      )
    );
  }
  if (item.kind === "tool")
    return base + item.content.reduce((sum, part) => sum + (part.type === "content" ? 60 : 200), 0);
  return base;
}
