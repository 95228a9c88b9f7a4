import { type CSSProperties, memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Terminal as TerminalState } from "../../model/conversation";
import { CopyButton } from "../CopyButton";
import { saveText } from "../save";
import { Icon } from "../icons";
import { bytes, grouped, plural } from "../words";
import { needsEmulator, parseAnsi, type Span, type Style, type StyledLine } from "./ansi";
import { tailOf } from "./tail";
import styles from "./Terminal.module.css";

interface Props {
  output: string;
  /** What was run, as a prompt above the output. */
  command?: string | undefined;
  truncated?: boolean;
  exit?: TerminalState["exit"];
  running?: boolean;
  label?: string;
}

/** Output of a program as its terminal would show it; of long output the end, and the rest as a file. */
export const Terminal = memo(function Terminal({
  output,
  command,
  truncated = false,
  exit = null,
  running = false,
  label = "Terminal output",
}: Props) {
  const tail = useMemo(() => tailOf(output), [output]);
  const lines = useLines(tail.text);
  const scroller = useStick(lines);
  return (
    <div className={styles.terminal}>
      <div className={styles.head}>
        {command === undefined ? (
          <span className={styles.command}>{label}</span>
        ) : (
          <code className={styles.command}>
            <span aria-hidden="true">$ </span>
            {command}
          </code>
        )}
        <Exit exit={exit} running={running} />
        <CopyButton text={() => strip(output)} label="Copy the output" iconOnly />
      </div>
      {tail.whole && !truncated ? null : (
        <div className={styles.cut}>
          <span>
            {tail.whole
              ? "The beginning was not kept."
              : `The last ${plural(tail.shownLines, "line")} of ${grouped(tail.lines)}, ${bytes(output.length)}.`}
          </span>
          {tail.whole ? null : (
            <button type="button" onClick={() => saveText(strip(output), "output.txt")}>
              <Icon name="download" />
              Save all as text
            </button>
          )}
        </div>
      )}
      {output === "" ? (
        <p className={styles.none}>{running ? "No output yet." : "No output."}</p>
      ) : (
        <div className={styles.screen} ref={scroller} tabIndex={0} role="region" aria-label={label}>
          <Lines lines={lines} />
        </div>
      )}
    </div>
  );
});

const Lines = memo(function Lines({ lines }: { lines: readonly StyledLine[] }) {
  return lines.map((line, index) => <LineView key={index} line={line} />);
});

/** Only the last lines of growing output are other ones than before. */
const LineView = memo(
  function LineView({ line }: { line: StyledLine }) {
    return <div className={styles.line}>{line.length === 0 ? <br /> : line.map(drawSpan)}</div>;
  },
  (a, b) => a.line.length === b.line.length && a.line.every((span, index) => sameSpan(span, b.line[index])),
);

function sameSpan(a: Span, b: Span | undefined): boolean {
  return (
    b !== undefined && a.text === b.text && (a.style === b.style || JSON.stringify(a.style) === JSON.stringify(b.style))
  );
}

function drawSpan({ text, style }: Span, index: number) {
  if (style === null) return text;
  const names = [
    style.bold && styles.bold,
    style.dim && styles.dim,
    style.italic && styles.italic,
    style.underline && styles.underline,
    style.strike && styles.strike,
  ];
  return (
    <span key={index} className={names.filter(Boolean).join(" ")} style={coloursOf(style)}>
      {text}
    </span>
  );
}

function coloursOf({ fg, bg, inverse }: Style): CSSProperties {
  if (inverse) return { color: ink(bg) ?? "var(--code-bg)", backgroundColor: ink(fg) ?? "var(--fg)" };
  return { color: bg === null ? readable(fg) : ink(fg), backgroundColor: ground(bg) };
}

function ink(value: number | string | null): string | undefined {
  return typeof value === "number" ? `var(--ansi-${value})` : (value ?? undefined);
}

/** A colour chosen for a black screen must be read on a white one as well: its lightness is kept in bounds. */
function readable(value: number | string | null): string | undefined {
  if (typeof value !== "string") return ink(value);
  return `light-dark(oklch(from ${value} min(l, 0.5) c h), oklch(from ${value} max(l, 0.7) c h))`;
}

/** The theme's colours are made for letters: as a ground they are toned down. */
function ground(value: number | string | null): string | undefined {
  return typeof value === "number"
    ? `color-mix(in srgb, var(--ansi-${value}) 35%, var(--code-bg))`
    : (value ?? undefined);
}

/** The lines of the output. What moves the cursor waits for the emulator; until it is there, colours have to do. */
function useLines(text: string): readonly StyledLine[] {
  const moves = useMemo(() => needsEmulator(text), [text]);
  const plain = useMemo(() => parseAnsi(text), [text]);
  const [emulated, setEmulated] = useState<readonly StyledLine[] | null>(null);
  useEffect(() => {
    if (!moves) return;
    let gone = false;
    import("./emulator")
      .then(({ emulate }) => emulate(text))
      .then(
        (lines) => gone || setEmulated(lines),
        () => undefined, // The chunk did not arrive: the text stands there with its colours.
      );
    return () => {
      gone = true;
    };
  }, [moves, text]);
  return (moves ? emulated : null) ?? plain;
}

/** Follows the output's end until the reader scrolls up. */
function useStick(lines: readonly StyledLine[]) {
  const element = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  useEffect(() => {
    const box = element.current;
    if (box === null) return;
    const scrolled = () => {
      stuck.current = box.scrollHeight - box.scrollTop - box.clientHeight < 8;
    };
    box.addEventListener("scroll", scrolled, { passive: true });
    return () => box.removeEventListener("scroll", scrolled);
  }, [lines.length === 0]);
  useLayoutEffect(() => {
    if (stuck.current && element.current !== null) element.current.scrollTop = element.current.scrollHeight;
  }, [lines]);
  return element;
}

function Exit({ exit, running }: { exit: TerminalState["exit"]; running: boolean }) {
  if (exit === null) return running ? <span className={styles.exit}>running</span> : null;
  if (exit.signal !== null) return <span className={styles.failed}>ended by {exit.signal}</span>;
  if (exit.exitCode === null) return null;
  return <span className={exit.exitCode === 0 ? styles.exit : styles.failed}>exit {exit.exitCode}</span>;
}

function strip(output: string): string {
  return parseAnsi(output)
    .map((line) => line.map((span) => span.text).join(""))
    .join("\n");
}
