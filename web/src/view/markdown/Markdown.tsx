import { memo, type MouseEvent, useEffect, useMemo, useReducer, useRef } from "react";
import { copyText } from "../copy";
import { type Blocks, NO_BLOCKS, readFence, splitBlocks } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import { type Definitions, definitions, NO_DEFINITIONS } from "./definitions";
import { highlight } from "./highlight";
import { renderBlock } from "./safety";
import "./colours.css";
import styles from "./Markdown.module.css";

interface Props {
  text: string;
  /** More of it may come. */
  streaming?: boolean;
}

/** Markdown, drawn block by block: while it grows only its last block is rendered again. */
export const Markdown = memo(function Markdown({ text, streaming = false }: Props) {
  const before = useRef<Blocks>(NO_BLOCKS);
  const blocks = useMemo(() => {
    before.current = splitBlocks(text, before.current);
    return before.current.blocks;
  }, [text]);
  const defined = useMemo(() => definitions(blocks), [blocks]);
  const last = blocks.length - 1;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: catches the clicks of the copy buttons inside
    // biome-ignore lint/a11y/useKeyWithClickEvents: those buttons turn keys into clicks
    <div className={streaming ? `${styles.body} ${styles.growing}` : styles.body} onClick={copyClicked}>
      {blocks.map((block, index) => (
        <Block key={index} block={block} defined={defined} growing={streaming && index === last} />
      ))}
    </div>
  );
});

const Block = memo(
  function Block({ block, defined, growing }: { block: string; defined: Definitions; growing: boolean }) {
    const fence = useMemo(() => readFence(block), [block]);
    if (fence !== null) return <CodeBlock {...fence} streaming={growing} />;
    return <Html block={block} defined={defined} growing={growing} />;
  },
  (a, b) =>
    a.block === b.block && a.growing === b.growing && (a.defined.key === b.defined.key || !b.block.includes("[")),
);

function Html({ block, defined, growing }: { block: string; defined: Definitions; growing: boolean }) {
  const root = useRef<HTMLDivElement>(null);
  const html = usePacedHtml(block, defined, growing);
  useEffect(() => {
    if (!growing) for (const code of root.current?.querySelectorAll("code[data-language]") ?? []) colour(code);
  }, [html, growing]);
  // biome-ignore lint/security/noDangerouslySetInnerHtml: renderBlock escapes raw HTML and DOMPurify checks the result
  return <div ref={root} className={styles.block} dangerouslySetInnerHTML={html} />;
}

/** A growing block may take this share of the time: one that took 10 ms is not rendered again for 80. */
const PACE = 8;

/** The block's HTML; of one that grows and takes long to render, sometimes that of a moment ago. */
function usePacedHtml(block: string, defined: Definitions, growing: boolean): { __html: string } {
  const made = useRef({ block: "", defined: NO_DEFINITIONS, html: { __html: "" }, cost: 0, at: 0 });
  const [, again] = useReducer((count: number) => count + 1, 0);
  const started = performance.now();
  const { current } = made;
  const stale = current.block !== block || current.defined.key !== defined.key;
  if (stale && (!growing || started - current.at >= PACE * current.cost)) {
    const html = { __html: renderBlock(block, defined) };
    const at = performance.now();
    made.current = { block, defined, html, cost: at - started, at };
  }
  useEffect(() => {
    if (made.current.block === block && made.current.defined.key === defined.key) return;
    const timer = setTimeout(again, PACE * made.current.cost);
    return () => clearTimeout(timer);
  });
  return made.current.html;
}

/** Code inside a list or a quotation came as HTML: it is coloured in place. */
function colour(code: Element): void {
  const text = code.textContent ?? "";
  highlight(text, code.getAttribute("data-language") ?? "").then(
    (html) => {
      if (html !== null && code.textContent === text) code.innerHTML = html;
    },
    () => undefined, // No colours then.
  );
}

function copyClicked(event: MouseEvent<HTMLElement>): void {
  const button = (event.target as Element).closest(`button.${CSS.escape(styles.copy ?? "")}`);
  const code = button?.parentElement?.parentElement?.querySelector("code");
  if (button === null || code === null || code === undefined) return;
  void copyText(code.textContent ?? "").then((done) => {
    button.textContent = done ? "Copied" : "Not allowed";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}
