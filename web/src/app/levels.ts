/** What the mediation levels mean. */
export const LEVELS: Record<string, string> = {
  full: "Every tool call reaches the rules before it runs.",
  asking: "Only what the agent asks about reaches the rules.",
  none: "Nothing that this agent does is sure to reach the rules.",
};
