/** Files that become part of a message: read, checked against what the agent and the gateway take, refused with a reason. */

import { newId } from "../bridge/client";
import type { ContentBlock } from "../bridge/events";
import type { Conversation } from "../model/conversation";
import { bytes } from "./bytes";
import type { Attachment } from "./drafts";

const TEXT = /^(text\/|application\/(json|xml|toml|yaml|x-yaml|javascript|x-sh|sql))/;
const TEXT_NAME =
  /\.(md|txt|py|pyi|js|mjs|cjs|ts|tsx|jsx|json|toml|ya?ml|rs|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php|sh|bash|zsh|fish|sql|html|css|scss|xml|ini|cfg|conf|lua|swift|log|csv|diff|patch|tex)$/i;

/** Room for the JSON around the data and for the text that goes with it. */
const ENVELOPE = 64 * 1024;

export interface Refused {
  readonly name: string;
  readonly reason: string;
}

/** How large a message with this is on the wire. */
function weight(attachments: readonly Attachment[]): number {
  return attachments.reduce((sum, { size }) => sum + Math.ceil(size / 3) * 4, 0);
}

export async function attach(
  files: readonly File[],
  present: readonly Attachment[],
  takes: Conversation["capabilities"],
  maxMessageBytes: number,
): Promise<{ added: Attachment[]; refused: Refused[] }> {
  const added: Attachment[] = [];
  const refused: Refused[] = [];
  for (const file of files) {
    // The size is known before anything is read: a file of 30 MB is refused at once.
    const total = weight([...present, ...added]) + Math.ceil(file.size / 3) * 4 + ENVELOPE;
    const largest = Math.max(0, Math.floor(((maxMessageBytes - ENVELOPE - weight([...present, ...added])) * 3) / 4));
    if (total > maxMessageBytes)
      refused.push({
        name: file.name,
        reason: `it has ${bytes(file.size)}, and at most ${bytes(largest)} fit into this message`,
      });
    else
      await read(file, takes).then(
        (attachment) => added.push(attachment),
        (error: Error) => refused.push({ name: file.name, reason: error.message }),
      );
  }
  return { added, refused };
}

async function read(file: File, takes: Conversation["capabilities"]): Promise<Attachment> {
  const { name, size } = file;
  const id = newId();
  if (file.type.startsWith("image/")) {
    if (!takes.image) throw new Error("this agent takes no images");
    const block: ContentBlock = { type: "image", data: await base64(file), mimeType: file.type };
    return { id, name, size, block, preview: `data:${file.type};base64,${block.data}` };
  }
  if (file.type.startsWith("audio/")) {
    if (!takes.audio) throw new Error("this agent takes no sound");
    return { id, name, size, block: { type: "audio", data: await base64(file), mimeType: file.type }, preview: null };
  }
  if (!TEXT.test(file.type) && !TEXT_NAME.test(name)) throw new Error("it is neither an image nor text");
  if (!takes.embeddedContext) throw new Error("this agent takes no files; mention one of its folder with @ instead");
  const resource = {
    uri: `file:///${encodeURIComponent(name)}`,
    mimeType: file.type || "text/plain",
    text: await file.text(),
  };
  return { id, name, size, block: { type: "resource", resource }, preview: null };
}

function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new Error("it could not be read"));
    reader.readAsDataURL(file);
  });
}
