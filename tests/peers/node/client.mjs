// A client on the official TypeScript SDK: one whole turn, two sessions at once, a cancel.
// Arguments: the working directory, then the command to speak to. Prints what it saw as one JSON line.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const [cwd, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

const updates = [];
const waiting = [];
const seen = (update) => {
  updates.push(update);
  for (const check of [...waiting]) check();
};
const until = (found) =>
  new Promise((resolve) => {
    const check = () => {
      if (!updates.some(found)) return;
      waiting.splice(waiting.indexOf(check), 1);
      resolve();
    };
    waiting.push(check);
    check();
  });
const texts = (sessionId) =>
  updates
    .filter((entry) => entry.sessionId === sessionId && entry.update.sessionUpdate === "agent_message_chunk")
    .map((entry) => entry.update.content.text);

const app = client({ name: "node-peer" })
  .onNotification(methods.client.session.update, (context) => seen(context.params))
  .onRequest(methods.client.session.requestPermission, (context) => ({
    outcome: { outcome: "selected", optionId: context.params.options.find((o) => o.kind === "allow_once").optionId },
  }));

const report = await app.connectWith(stream, async (agent) => {
  const prompt = (sessionId, text) =>
    agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const open = async () =>
    (await agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;

  const hello = await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const [one, two] = [await open(), await open()];
  const whole = await prompt(one, "say hello\ntoolopen call-1\npermission\ntool call-1");
  const sleeping = prompt(two, "sleep-until-cancel");
  await until((entry) => entry.sessionId === two);
  const beside = await prompt(one, "say beside");
  await agent.notify(methods.agent.session.cancel, { sessionId: two });
  const cancelled = await sleeping;
  return {
    version: hello.protocolVersion,
    ids: [one, two],
    stops: [whole.stopReason, beside.stopReason, cancelled.stopReason],
    texts: { one: texts(one), two: texts(two) },
    kinds: updates.map((entry) => entry.update.sessionUpdate),
  };
});

child.stdin.end();
console.log(JSON.stringify({ ...report, exit: await exited }));
process.exit(0);
