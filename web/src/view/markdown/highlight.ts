/** Colours code. The highlighter and each language are loaded when a block first needs them. */

import type { HLJSApi, LanguageFn } from "highlight.js";
import { purifySpans } from "./safety";

type Load = () => Promise<{ default: LanguageFn }>;

const LANGUAGES: Record<string, Load> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  dart: () => import("highlight.js/lib/languages/dart"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  elixir: () => import("highlight.js/lib/languages/elixir"),
  go: () => import("highlight.js/lib/languages/go"),
  graphql: () => import("highlight.js/lib/languages/graphql"),
  haskell: () => import("highlight.js/lib/languages/haskell"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  nginx: () => import("highlight.js/lib/languages/nginx"),
  nix: () => import("highlight.js/lib/languages/nix"),
  perl: () => import("highlight.js/lib/languages/perl"),
  php: () => import("highlight.js/lib/languages/php"),
  powershell: () => import("highlight.js/lib/languages/powershell"),
  protobuf: () => import("highlight.js/lib/languages/protobuf"),
  python: () => import("highlight.js/lib/languages/python"),
  r: () => import("highlight.js/lib/languages/r"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  scala: () => import("highlight.js/lib/languages/scala"),
  scss: () => import("highlight.js/lib/languages/scss"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const ALIASES: Record<string, string> = {
  "c++": "cpp",
  cc: "cpp",
  cjs: "javascript",
  console: "bash",
  cs: "csharp",
  cts: "typescript",
  docker: "dockerfile",
  ex: "elixir",
  exs: "elixir",
  golang: "go",
  gql: "graphql",
  h: "c",
  hpp: "cpp",
  hs: "haskell",
  html: "xml",
  js: "javascript",
  json5: "json",
  jsonc: "json",
  jsonl: "json",
  jsx: "javascript",
  kt: "kotlin",
  make: "makefile",
  md: "markdown",
  mjs: "javascript",
  mts: "typescript",
  patch: "diff",
  pl: "perl",
  proto: "protobuf",
  ps1: "powershell",
  py: "python",
  pyi: "python",
  python3: "python",
  rb: "ruby",
  rs: "rust",
  sass: "scss",
  sh: "bash",
  shell: "bash",
  svg: "xml",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  vue: "xml",
  yml: "yaml",
  zsh: "bash",
};

/** Longer code stays without colours: the work is done between frames and must stay short. */
export const LONGEST_CODE = 40_000;

/** The name by which we know a language, or null. */
export function languageOf(name: string): string | null {
  const key = name.toLowerCase();
  const known = ALIASES[key] ?? key;
  return Object.hasOwn(LANGUAGES, known) ? known : null;
}

/** The language that a file's name gives away, or null. */
export function languageOfPath(path: string): string | null {
  const name = path.split(/[\\/]/).pop() ?? "";
  if (/^(dockerfile|makefile)$/i.test(name)) return name.toLowerCase();
  return name.includes(".") ? languageOf(name.split(".").pop() ?? "") : null;
}

let core: Promise<HLJSApi> | null = null;
const ready = new Map<string, Promise<HLJSApi>>();

function highlighter(language: string): Promise<HLJSApi> {
  const known = ready.get(language);
  if (known !== undefined) return known;
  core ??= import("highlight.js/lib/core").then((module) => module.default);
  const load = LANGUAGES[language];
  const prepared = Promise.all([core, load?.()]).then(([api, grammar]) => {
    if (grammar !== undefined) api.registerLanguage(language, grammar.default);
    return api;
  });
  // A chunk that did not arrive is asked for again by the next block.
  prepared.catch(() => ready.delete(language));
  ready.set(language, prepared);
  return prepared;
}

const CACHE_SIZE = 300;
const cache = new Map<string, string>();

/** What an earlier call made of the same code, so that a block that scrolls back in has its colours at once. */
export function highlighted(code: string, language: string): string | undefined {
  return cache.get(`${language}\n${code}`);
}

/** HTML of spans for the code; null when we have no colours for it. */
export async function highlight(code: string, language: string): Promise<string | null> {
  const known = languageOf(language);
  if (known === null || code.length > LONGEST_CODE) return null;
  const api = await highlighter(known);
  await idle();
  const html = purifySpans(api.highlight(code, { language: known, ignoreIllegals: true }).value);
  cache.set(`${language}\n${code}`, html);
  const oldest = cache.keys().next();
  if (cache.size > CACHE_SIZE && oldest.done !== true) cache.delete(oldest.value);
  return html;
}

function idle(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof requestIdleCallback === "function") requestIdleCallback(() => resolve(), { timeout: 500 });
    else setTimeout(resolve, 0);
  });
}
