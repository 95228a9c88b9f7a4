import { memo } from "react";
import type { ContentBlock } from "../../bridge/events";
import { Fold } from "../Fold";
import { Icon } from "../icons";
import { safeAddress } from "../markdown/safety";
import { Terminal } from "../terminal";
import { leadsToThisMachine, THIS_MACHINE, THIS_MACHINE_HINT } from "../thisMachine";
import { bytes } from "../words";
import { Picture } from "./Picture";
import styles from "./Message.module.css";

/** A piece of content that is no text: a picture, a sound, a file. */
export const Block = memo(function Block({ block }: { block: ContentBlock }) {
  switch (block.type) {
    case "text":
      return <p className={styles.text}>{block.text}</p>;
    case "image":
      return <Picture block={block} />;
    case "audio":
      return (
        // biome-ignore lint/a11y/useMediaCaption: ACP sends sounds without captions
        <audio
          className={styles.audio}
          controls
          src={`data:${soundType(block.mimeType)};base64,${block.data}`}
          aria-label="Sound"
        />
      );
    case "resource_link":
      return <FileChip name={block.title || block.name} uri={block.uri} size={block.size} />;
    case "resource":
      return <Resource resource={block.resource} />;
    default:
      return <FileChip name={`${(block as { type: string }).type}: cannot be shown here`} uri="" />;
  }
});

function soundType(type: string): string {
  return /^audio\/[\w.+-]+$/.test(type) ? type : "audio/mpeg";
}

export function FileChip({ name, uri, size }: { name: string; uri: string; size?: number | undefined }) {
  const address = safeAddress(uri);
  const here = address !== null && leadsToThisMachine(address);
  const inside = (
    <>
      <Icon name={address === null ? "file" : "link"} />
      <span className={styles.chipName}>{name || uri}</span>
      {size === undefined || size === null ? null : <span className={styles.size}>{bytes(size)}</span>}
    </>
  );
  return address === null ? (
    <span className={styles.chip} title={readable(uri)}>
      {inside}
    </span>
  ) : (
    <a
      className={styles.chip}
      title={here ? `${uri}\n${THIS_MACHINE_HINT}` : uri}
      href={address}
      target="_blank"
      rel="noopener noreferrer"
    >
      {inside}
      {here ? <span className={styles.machine}>{THIS_MACHINE}</span> : null}
    </a>
  );
}

function readable(uri: string): string {
  return uri.startsWith("file://") ? uri.slice("file://".length) : uri;
}

function Resource({ resource }: { resource: { uri: string; mimeType?: string; text?: string; blob?: string } }) {
  const name = readable(resource.uri).split("/").pop() || resource.uri;
  if (resource.text === undefined)
    return (
      <FileChip
        name={name}
        uri={resource.uri}
        size={resource.blob === undefined ? undefined : Math.floor(resource.blob.length * 0.75)}
      />
    );
  const text = resource.text;
  return (
    <Fold
      name={`resource ${resource.uri} ${text.length}`}
      label={
        <>
          <Icon name="file" /> {name} · {bytes(text.length)}
        </>
      }
    >
      {() => <Terminal output={text} label={name} />}
    </Fold>
  );
}
