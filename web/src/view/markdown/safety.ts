/**
 * Markdown to HTML that cannot do anything: no HTML of the author's, no script, nothing loaded from elsewhere.
 *
 * Two walls. marked's renderer writes every tag itself and escapes raw HTML into text; DOMPurify then lets
 * only a short list of tags and attributes through, whatever the first wall overlooked.
 */

import DOMPurify from "dompurify";
import { Lexer, Marked, type Token, Tokenizer, type Tokens } from "marked";
import { leadsToThisMachine, THIS_MACHINE, THIS_MACHINE_HINT } from "../thisMachine";
import type { Definitions } from "./definitions";
import { readLinkLine } from "./linkLine";
import styles from "./Markdown.module.css";

const TAGS = [
  "a",
  "blockquote",
  "br",
  "button",
  "code",
  "del",
  "div",
  "em",
  "h1",
  "h2",
  "h3",
  "h4",
  "h5",
  "h6",
  "hr",
  "input",
  "li",
  "ol",
  "p",
  "pre",
  "span",
  "strong",
  "table",
  "tbody",
  "td",
  "th",
  "thead",
  "tr",
  "ul",
];
const ATTRIBUTES = [
  "align",
  "aria-label",
  "checked",
  "class",
  "data-language",
  "disabled",
  "href",
  "rel",
  "start",
  "tabindex",
  "target",
  "title",
  "type",
  "role",
];
const SAFE_ADDRESS = /^(?:https?:\/\/|mailto:)/i;

/** The address if a click on it may leave the page, else null. */
export function safeAddress(address: string): string | null {
  // Browsers skip control characters and blanks inside a scheme: "java\nscript:" is "javascript:".
  const plain = address.replace(/[\u0000-\u0020\u007f-\u00a0\u2028\u2029]/g, "");
  return SAFE_ADDRESS.test(plain) ? plain : null;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

function letters(text: string): number {
  return text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
}

function anchor(address: string, label: string, title: string | null | undefined): string {
  const safe = safeAddress(address);
  const words = label.trim() === "" ? escapeHtml(address) : label;
  // A relative address means a file of the agent's, not a page of this server.
  if (safe === null) return `<span title="${escapeHtml(address)}">${words}</span>`;
  const here = leadsToThisMachine(safe);
  const hint = here ? THIS_MACHINE_HINT : title;
  const link = `<a href="${escapeHtml(safe)}" target="_blank" rel="noopener noreferrer"${hint ? ` title="${escapeHtml(hint)}"` : ""}>${words}</a>`;
  return here ? `${link} <span class="${styles.machine}" title="${THIS_MACHINE_HINT}">${THIS_MACHINE}</span>` : link;
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  tokenizer: {
    /** Hides a line only if it is one of the message's definitions, which the lexer was given. */
    def(source): Tokens.Def | undefined {
      const line = readLinkLine(source);
      if (line === null || this.lexer.tokens.links[line.label]?.href !== line.href) return undefined;
      return { type: "def", tag: line.label, raw: line.raw, href: line.href, title: line.title ?? "" };
    },
    /** Notes which definition the link uses. */
    reflink(source, links) {
      let label = "";
      const asked = new Proxy(links, {
        get(all, name: string) {
          label = name;
          return all[name];
        },
      });
      const token = Tokenizer.prototype.reflink.call(this, source, asked);
      return token === undefined || token.type === "text" ? token : Object.assign(token, { label });
    },
    /** Text after `<pre>` or `<script>`, which are text here too, is none that a browser may read as HTML. */
    inlineText(source) {
      const token = Tokenizer.prototype.inlineText.call(this, source);
      return token === undefined ? undefined : { ...token, escaped: false };
    },
    /** Rows may not have more cells than the head: marked would drop those, so such a table stays text. */
    table(source): Tokens.Table | undefined {
      const token = Tokenizer.prototype.table.call(this, source);
      if (token === undefined) return undefined;
      const cells = [token.header, ...token.rows]
        .flat()
        .map((cell) => cell.text)
        .join("");
      return letters(cells) === letters(token.raw) ? token : undefined;
    },
  },
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escapeHtml(text),
    image: ({ href, text, title }: Tokens.Image) =>
      `<span class="${styles.picture}">${anchor(href, escapeHtml(text || href), title || href)}</span>`,
    link({ href, title, tokens }: Tokens.Link) {
      return anchor(href, this.parser.parseInline(tokens), title);
    },
    code: ({ text, lang }: Tokens.Code) => codeHtml(text, (lang ?? "").split(/\s/)[0] ?? ""),
    table(token: Tokens.Table) {
      const row = (cells: Tokens.TableCell[]) =>
        this.tablerow({ text: cells.map((cell) => this.tablecell(cell)).join("") });
      const body = token.rows.map(row).join("");
      return (
        `<div class="${styles.scroll}" role="region" aria-label="Table" tabindex="0"><table>` +
        `<thead>${row(token.header)}</thead>${body ? `<tbody>${body}</tbody>` : ""}</table></div>`
      );
    },
    checkbox: ({ checked }: Tokens.Checkbox) =>
      `<input type="checkbox" disabled aria-label="${checked ? "done" : "open"}"${checked ? " checked" : ""}> `,
  },
});

/** A code block inside a list or a quotation; those at the top are React components with the same classes. */
function codeHtml(code: string, language: string): string {
  const label = escapeHtml(language || "text");
  return (
    `<div class="${styles.code}"><div class="${styles.codeHead}"><span>${label}</span>` +
    `<button type="button" class="${styles.copy}" aria-label="Copy code">Copy</button></div>` +
    `<pre tabindex="0" role="region" aria-label="Code, ${label}"><code data-language="${escapeHtml(language)}">` +
    `${escapeHtml(code)}</code></pre></div>`
  );
}

/** Longer blocks are shown as plain text: a parser must not hold the page up. */
const LONGEST = 60_000;
/** So are those with more signs than this: marked's time grows with their square (20,000 of them took 1.4 s). */
const MOST_SIGNS = 4_000;

/** Quotations or lists this deep are not readable, and every level costs a parser's and a browser's stack. */
const TOO_DEEP = /^[ \t]*(?:>[ \t]*){40}|^ {160}/m;

export function renderBlock(block: string, defined: Definitions): string {
  try {
    const tokens = read(block, defined);
    return tokens === null ? plain(block) : purify(marked.parser(tokens));
  } catch (error) {
    // Something else was too deep for the parser's stack.
    if (error instanceof RangeError) return plain(block);
    throw error;
  }
}

/** The labels of the definitions that links of this block use. */
export function usedLabels(block: string, defined: Definitions): readonly string[] {
  if (used.key !== defined.key || used.labels.size > MOST_KEPT) used = { key: defined.key, labels: new Map() };
  let labels = used.labels.get(block);
  if (labels === undefined) {
    labels = findLabels(block, defined);
    used.labels.set(block, labels);
  }
  return labels;
}

/** A message that grows asks again for each of its blocks, and for the last one as it was at each moment. */
const MOST_KEPT = 1_000;
let used = { key: "", labels: new Map<string, readonly string[]>() };

function findLabels(block: string, defined: Definitions): readonly string[] {
  const labels: string[] = [];
  try {
    void marked.walkTokens(read(block, defined) ?? [], (token) => {
      if ("label" in token && typeof token.label === "string") labels.push(token.label);
    });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return []; // shown as plain text
  }
  return labels;
}

/** The block's tokens; null if it is to be shown as plain text. */
function read(block: string, defined: Definitions): Token[] | null {
  if (block.length > LONGEST || countSigns(block) > MOST_SIGNS || TOO_DEEP.test(block)) return null;
  const lexer = new Lexer(marked.defaults);
  for (const [label, { href, title }] of defined.links) lexer.tokens.links[label] = { href, title: title ?? "" };
  const tokens = lexer.lex(block);
  return isWhole(tokens, block) ? tokens : null;
}

/** Whether every letter of the source is in a token: marked loses lines where a table in a quotation is none after all. */
function isWhole(tokens: readonly Token[], source: string): boolean {
  return (
    holds(tokens, source) &&
    tokens.every((token) => {
      if (token.type === "blockquote") return isWhole(token.tokens ?? [], (token as Tokens.Blockquote).text);
      if (token.type === "list")
        return (token as Tokens.List).items.every(
          (item) => (item.task || !TASK.test(item.text)) && isWhole(item.tokens, item.text.replace(TASK, "")),
        );
      return (
        !(token.type === "paragraph" || token.type === "text") ||
        token.tokens === undefined ||
        holds(token.tokens, token.raw.replace(TASK, ""))
      );
    })
  );
}

/** The box before a task is a token in one place and none in another; before a heading or a table it is lost. */
const TASK = /^\[[ xX]\] /;

function holds(tokens: readonly Token[], source: string): boolean {
  return letters(tokens.map(({ raw }) => raw).join("")) >= letters(source);
}

function plain(block: string): string {
  return `<p class="${styles.plain}">${escapeHtml(block)}</p>`;
}

function countSigns(block: string): number {
  let count = 0;
  for (let at = 0; at < block.length; at++) if ("*_`~[<!>".includes(block.charAt(at))) count++;
  return count;
}

function purify(html: string): string {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOWED_URI_REGEXP: SAFE_ADDRESS,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    // Without this an attribute that is no address would be held against the pattern above.
    ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== "href"),
  });
}

/** What the highlighter wrote: spans with a class, and nothing else. */
export function purifySpans(html: string): string {
  return DOMPurify.sanitize(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"] });
}
