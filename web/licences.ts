import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const LICENCE = /^(licen[cs]e|copying|notice)/i;

/** Texts of packages that leave their licence out, from their project's other packages. */
const MISSING = join(import.meta.dirname, "missing-licences");

/** Code of the tools themselves that ends up in the page, by how its module's name begins. */
const HELPERS: Record<string, string> = { "\0vite/": "vite", "\0rolldown": "rolldown" };

/** The folder of the package that a module is from; undefined for our own. */
function packageOf(module: string): string | undefined {
  const path = module.replace(/^\0/, "").split("?")[0] ?? "";
  const parts = path.split("/node_modules/");
  const name = parts.length > 1 ? /^(@[^/]+\/[^/]+|[^/@][^/]*)/.exec(parts.pop() ?? "")?.[0] : undefined;
  if (name !== undefined) return `${parts.join("/node_modules/")}/node_modules/${name}`;
  const helper = Object.keys(HELPERS).find((start) => module.startsWith(start));
  return helper === undefined ? undefined : join(import.meta.dirname, "node_modules", HELPERS[helper] as string);
}

/** What one package asks to be passed on with its code. */
function entry(folder: string): { title: string; text: string } {
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    name: string;
    version: string;
    license?: string;
  };
  const found = readdirSync(folder)
    .filter((name) => LICENCE.test(name))
    .sort();
  const kept = join(MISSING, `${about.name.replace("/", "+")}.txt`);
  const files = found.length > 0 ? found.map((name) => join(folder, name)) : existsSync(kept) ? [kept] : [];
  if (files.length === 0)
    throw new Error(`${about.name} is in the page and its package has no licence text: put it into ${kept}`);
  const text = files.map((file) => readFileSync(file, "utf8").trim()).join("\n\n");
  return { title: `${about.name} ${about.version} (${about.license ?? "see below"})`, text };
}

/** Writes `third-party-licenses.txt`: the licences of all packages whose code or styles are in the page. */
export function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle(_, bundle) {
      const bundled = Object.values(bundle).flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
      const styles = [...this.getModuleIds()].filter((id) => /\.css(\?|$)/.test(id));
      const folders = new Set([...bundled, ...styles].map(packageOf).filter((folder) => folder !== undefined));
      const entries = [...folders].filter((folder) => existsSync(join(folder, "package.json"))).map(entry);
      const sorted = entries.sort((one, other) => one.title.localeCompare(other.title, "en"));
      const rule = "=".repeat(80);
      const source = sorted.map(({ title, text }) => `${rule}\n${title}\n${rule}\n\n${text}\n`).join("\n");
      this.emitFile({
        type: "asset",
        fileName: "third-party-licenses.txt",
        source: `The web chat contains code of these packages.\n\n${source}`,
      });
    },
  };
}
