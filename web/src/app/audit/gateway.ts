/** Asking the gateway for the audit: answers as JSON, streams as one JSON object per line. */

import { fetchOwn } from "../login";

/** What went wrong, and what to do about it. */
export class Trouble extends Error {
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

const NOT_KEPT = new Trouble(
  "This gateway keeps no audit.",
  "Set audit.enabled = true in its config.toml and start it again.",
);

async function asked(path: string, options: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetchOwn(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Trouble("The gateway cannot be reached.", "Is it running? Try again when it is.");
  }
  if (answer.ok) return answer;
  const said = (await answer.json().catch(() => null)) as { error?: string; code?: string } | null;
  if (answer.status === 404 && said?.code !== "unknown_record") throw NOT_KEPT;
  if (answer.status === 401) throw new Trouble("This browser is not logged in any more.", "Load the page again.");
  const hint = answer.status === 403 ? "Ask for a token with that role." : "Try again, or look into the gateway's log.";
  throw new Trouble(said?.error ?? `The gateway answered ${answer.status}.`, hint);
}

export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await asked(path, signal === undefined ? {} : { signal })).json()) as T;
}

/** Each line of a stream, as it comes. */
export async function* lines<T>(path: string, options: RequestInit): AsyncGenerator<T> {
  const { body } = await asked(path, options);
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new Trouble("The connection to the gateway broke.", "Try again.");
    });
    const whole = (rest + (value ?? "")).split("\n");
    rest = whole.pop() ?? "";
    for (const line of whole) if (line !== "") yield JSON.parse(line) as T;
    if (done) return;
  }
}

export function asTrouble(error: unknown): Trouble {
  return error instanceof Trouble ? error : new Trouble(String(error), "Try again.");
}
