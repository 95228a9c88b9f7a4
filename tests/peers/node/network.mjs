// A client on the official TypeScript SDK's network transports: a turn with a permission, a cancel, a second
// connection that loads the session. Arguments: the working directory, the address, its token.
// Prints what it saw as one JSON line.
import { client, methods } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const [cwd, url, token] = process.argv.slice(2);
const stream = () =>
  url.startsWith("ws")
    ? createWebSocketStream(`${url}?token=${token}`)
    : createHttpStream(url, { headers: { Authorization: `Bearer ${token}` } });

const connect = async (work) => {
  const texts = [];
  const waiting = [];
  let questions = 0;
  const app = client({ name: "node-peer" })
    .onNotification(methods.client.session.update, (context) => {
      const update = context.params.update;
      if (update.sessionUpdate === "agent_message_chunk") texts.push(update.content.text);
      for (const check of [...waiting]) check();
    })
    .onRequest(methods.client.session.requestPermission, (context) => {
      questions += 1;
      const option = context.params.options.find((each) => each.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    });
  const told = (text) =>
    new Promise((resolve) => {
      const check = () => texts.includes(text) && resolve();
      waiting.push(check);
      check();
    });
  return app.connectWith(stream(), async (agent) => {
    await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
    const prompt = (sessionId, text) =>
      agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    const seen = await work({ agent, prompt, told });
    return { ...seen, texts, questions };
  });
};

const first = await connect(async ({ agent, prompt, told }) => {
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const whole = await prompt(sessionId, "say hello\npermission");
  const sleeping = prompt(sessionId, "sleep-until-cancel");
  await told("sleeping");
  await agent.notify(methods.agent.session.cancel, { sessionId });
  const cancelled = await sleeping;
  return { sessionId, stops: [whole.stopReason, cancelled.stopReason] };
});

const second = await connect(async ({ agent, prompt, told }) => {
  const { sessionId } = first;
  await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  await told("sleeping");
  const more = await prompt(sessionId, "say more");
  await told("more");
  return { stops: [more.stopReason] };
});

console.log(JSON.stringify({ first, second }));
process.exit(0);
