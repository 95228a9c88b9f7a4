import { memo, useRef, useState } from "react";
import type { ImageBlock } from "../../bridge/events";
import { Icon } from "../icons";
import styles from "./Message.module.css";

const TYPES = /^image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;

/** A picture that came with the message; never one from elsewhere. A click shows it large. */
export const Picture = memo(function Picture({
  block,
  name = "Picture",
}: {
  block: Pick<ImageBlock, "data" | "mimeType">;
  name?: string;
}) {
  const large = useRef<HTMLDialogElement>(null);
  const [broken, setBroken] = useState(false);
  if (broken || !TYPES.test(block.mimeType) || block.data === "") {
    return (
      <span className={styles.chip}>
        <Icon name="image" />A picture that cannot be shown ({block.mimeType || "no type"})
      </span>
    );
  }
  const source = `data:${block.mimeType};base64,${block.data}`;
  return (
    <>
      <button
        type="button"
        className={styles.picture}
        aria-label={`${name}: show it large`}
        onClick={() => large.current?.showModal()}
      >
        <img src={source} alt="" onError={() => setBroken(true)} />
      </button>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the browser closes a modal dialog on Escape */}
      <dialog ref={large} className={styles.large} aria-label={name} onClick={() => large.current?.close()}>
        <img src={source} alt={name} />
      </dialog>
    </>
  );
});
