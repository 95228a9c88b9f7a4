// @vitest-environment jsdom
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readFence, splitBlocks } from "../../src/view/markdown/blocks";
import { definitions } from "../../src/view/markdown/definitions";
import { renderBlock } from "../../src/view/markdown/safety";

/** Each block of a message with the text that the page shows for it. */
function shown(message: string): { block: string; text: string; html: HTMLElement }[] {
  const { blocks } = splitBlocks(message);
  const defined = definitions(blocks);
  return blocks.map((block) => {
    const html = document.createElement("div");
    const fence = readFence(block);
    if (fence === null) html.innerHTML = renderBlock(block, defined);
    else html.textContent = `${fence.language} ${fence.code}`;
    for (const copy of html.querySelectorAll("button")) copy.parentElement?.remove(); // the bar above code is ours
    for (const part of html.querySelectorAll(
      "pre, p, ul, ol, li, table, tr, td, th, blockquote, hr, br, h1, h2, h3, h4, h5, h6",
    )) {
      part.before("\n"); // on the page they stand apart
      part.after("\n");
    }
    return { block, text: html.textContent ?? "", html };
  });
}

function words(text: string): string[] {
  return text.replace(/[*_`~]/g, "").match(/\p{L}{2,}/gu) ?? [];
}

describe("lines that only look like definitions", () => {
  it.each([
    "[INFO]: Server started",
    "[INFO]: ready",
    "[WARN]: /var/log is full",
    "[^1]: a footnote",
    "[a]: <not an address>",
    "[a]: https://example.org and more",
    "[1]: https://example.org/never-referred-to",
    "[__proto__]: polluted",
    "[x]:",
    "[see]:\nhttps://example.org/on-the-next-line",
    "[see]: https://example.org/one\n[see]: https://example.org/two",
    "[see]: https://example.org/up\n[see]: Server started",
    "[see]: https://example.org/up\n\n> [see]: Server started",
    "[see] is up\n[see]: https://example.org/in-a-paragraph",
    "> [see]: https://example.org/quoted",
    "- [see]: https://example.org/listed",
    "1. [see]: https://example.org/numbered",
    "[key]: https://example.org/only-in-code\n\n`map[key]` and ``[key]``",
    "[key]: https://example.org/only-in-code\n\n    map [key]",
    "[key]: https://example.org/only-in-code\n\n- ~~~\n  [key]\n  ~~~",
    "[key]: https://example.org/escaped\n\n\\[key]",
    "[key]: https://example.org/one\n\n[key](#)",
  ])("stay visible and appear once: %j", (line) => {
    const message = `First paragraph [see].\n\n${line}\n\nLast paragraph [too].\n`;
    for (const { block, text } of shown(message)) expect(words(text)).toEqual(words(block));
  });
});

describe("definitions", () => {
  it("link every block that refers to them, and are hidden", () => {
    const blocks = shown(
      'See [the  Docs] and [it][the docs].\n\n> quoted [the docs]\n\n[the docs]: https://example.org/x "A title"\n',
    );
    expect(blocks.map(({ html }) => [...html.querySelectorAll("a")].map((link) => link.href))).toEqual([
      ["https://example.org/x", "https://example.org/x"],
      ["https://example.org/x"],
      [],
    ]);
    expect(blocks[0]?.html.querySelector("a")?.title).toBe("A title");
    expect(blocks[2]?.text.trim()).toBe("");
  });

  it("are not read inside code", () => {
    const [, text] = shown("```\n[a]: https://example.org\n```\n\nsee [a]\n");
    expect(text?.html.querySelector("a")).toBeNull();
  });

  it("do not run into a block that is still open", () => {
    for (const { text } of shown("- ```\n  [a] code\n\n[a]: https://example.org/once\n"))
      expect(text.split("example.org").length).toBeLessThan(3);
  });
});

describe("what stays readable", () => {
  it.each([
    ["The <script> tag holds a Map<K, V>.", "The <script> tag holds a Map<K, V>."],
    ["<pre> of List<String>", "<pre> of List<String>"],
    ["- [ ] open\n- [x] done\n  ===", "- [ ] open\n- [x] done\n  ==="],
    ["see [ ](src/app.py)", "see src/app.py"],
  ])("%j", (message, text) => expect(shown(message)[0]?.text.trim()).toBe(text));

  it("has the path that a link to a file of the agent's names", () => {
    const [block] = shown("see [the app](src/app.py:12)");
    expect(block?.text.trim()).toBe("see the app");
    expect(block?.html.querySelector("span")?.title).toBe("src/app.py:12");
  });
});

const WORD = fc.constantFrom("server", "INFO", "warning", "started", "Foo", "bar", "naïve", "値段");
const LOG = fc.tuple(WORD, fc.array(WORD, { maxLength: 4 })).map(([label, rest]) => `[${label}]: ${rest.join(" ")}`);
const TEXT = fc
  .array(
    fc.oneof(
      WORD,
      WORD.map((word) => `[${word}]`),
      WORD.map((word) => `**${word}**`),
      fc.constantFrom(":", "|", "-", "(x)", "#", "1.", "\\", "!"),
    ),
    { minLength: 1, maxLength: 8 },
  )
  .map((parts) => parts.join(" "));
const LINE = fc.oneof(
  LOG,
  TEXT,
  fc.constant(""),
  fc.constant("---"),
  fc.constant("```"),
  fc.constant("~~~"),
  TEXT.map((text) => `- ${text}`),
  TEXT.map((text) => `> ${text}`),
  TEXT.map((text) => `## ${text}`),
  TEXT.map((text) => `    ${text}`),
  LOG.map((log) => `  ${log}`),
  TEXT.map((text) => `| ${text} |`),
  fc.constant("| --- |"),
);

it("no rendered block shows other words than its source", () => {
  fc.assert(
    fc.property(fc.array(LINE, { maxLength: 12 }), (lines) => {
      for (const { block, text } of shown(lines.join("\n"))) expect(words(text)).toEqual(words(block));
    }),
    {
      numRuns: 300,
      examples: [
        [["    [server]", "~~~", "**server**", "~~~", "    server"]],
        [["> server", "| --- |", "| --- |", "| | **server** |"]],
        [["- :", "| --- |", "| --- |", "    **server** | **server**"]],
      ],
    },
  );
}, 60_000);

const ADDRESS = fc.nat({ max: 99 }).map((number) => `https://example.org/${number}`);
const DEFINING = fc.tuple(WORD, ADDRESS).map(([label, address]) => `[${label}]: ${address}`);
const REFERRING = fc
  .tuple(WORD, WORD)
  .chain(([text, label]) =>
    fc.constantFrom(
      `[${label}]`,
      `[${text}][${label}]`,
      `[${label}][]`,
      `\`[${label}]\``,
      `\\[${label}]`,
      `[${label}](#)`,
    ),
  );

it("no address of a message is lost, whatever its definitions and links are", () => {
  const line = fc.oneof(
    { weight: 3, arbitrary: DEFINING },
    { weight: 3, arbitrary: REFERRING },
    DEFINING.map((text) => `> ${text}`),
    DEFINING.map((text) => `- ${text}`),
    REFERRING.map((text) => `- ~~~\n  ${text}\n  ~~~`),
    REFERRING.map((text) => `    ${text}`),
    LINE,
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
      const message = lines.join("\n");
      const blocks = shown(message);
      const seen = blocks.flatMap(({ text, html }) => [
        ...(text.match(/https:\/\/example\.org\/\d+/g) ?? []),
        ...[...html.querySelectorAll("a")].map((link) => link.href),
      ]);
      expect(new Set(seen)).toEqual(new Set(message.match(/https:\/\/example\.org\/\d+/g) ?? []));
    }),
    { numRuns: 300 },
  );
}, 60_000);
