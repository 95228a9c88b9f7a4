export { BridgeClient, BridgeError, newId } from "./client";
export type { ClientOptions, Hello, Reply, Sendable, Status } from "./client";
export type { ConnectionState, Incoming, Timings } from "./connection";
export type { Command as SentCommand, Entry, Keeper } from "./outbox";
export type * from "./events";
