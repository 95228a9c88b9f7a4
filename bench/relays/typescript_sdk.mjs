// A minimal ACP relay on the official TypeScript SDK: `node typescript_sdk.mjs AGENT [ARGUMENT...]`.
// It is an agent to the client and a client to the agent, typed through the SDK on both sides.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { agent: down, client: up } = acp.methods;
const child = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });

const downstream = acp
  .client({ name: "relay" })
  .onNotification(up.session.update, ({ params }) => upstream.client.notify(up.session.update, params))
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));

const forward = (method) => ({ params }) => downstream.agent.request(method, params);

const upstream = acp
  .agent({ name: "relay" })
  .onRequest(down.initialize, forward(down.initialize))
  .onRequest(down.session.new, forward(down.session.new))
  .onRequest(down.session.prompt, forward(down.session.prompt))
  .onNotification(down.session.cancel, ({ params }) => downstream.agent.notify(down.session.cancel, params))
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

await upstream.closed;
child.stdin.end();
