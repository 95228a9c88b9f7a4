/**
 * The parts that are no part of the first load. They are wanted when a command runs or a file changes, which may be the
 * moment in which the gateway is gone: so they are fetched ahead, when the page has nothing better to do.
 */
export async function loadParts(): Promise<void> {
  await Promise.allSettled([
    import("./terminal/Terminal"),
    import("./terminal/emulator"),
    import("./diff/Diff"),
    import("./diff/Changes"),
    import("./question/Elicitation"),
  ]);
}
