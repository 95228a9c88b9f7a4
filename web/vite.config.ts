import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { licences } from "./licences.ts";

const OUT = process.env.DRAGOMAN_WEB_OUT ?? "dist";

/** Each file beside its compressed forms, so that the gateway has nothing to do but send them. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    writeBundle() {
      const folder = join(OUT, "assets");
      for (const name of readdirSync(folder).filter((each) => /\.(js|css|svg)$/.test(each))) {
        const content = readFileSync(join(folder, name));
        if (content.length < 1024) continue;
        writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
        writeFileSync(
          join(folder, `${name}.br`),
          brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } }),
        );
      }
    },
  };
}

// The page is served at `/` by the gateway, from inside the wheel. Nothing is inlined: the page's
// Content-Security-Policy allows scripts and styles from its own origin alone.
export default defineConfig({
  plugins: [react(), licences(), compressed()],
  base: "/",
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // the first with light-dark()
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 900,
    rolldownOptions: { input: ["index.html", "reader.html"], checks: { bundlerTimings: false } }, // what a slow machine would be told
  },
  server: {
    proxy: {
      "^/\\?token=": { target: "http://127.0.0.1:8420" }, // becomes a login here too
      "/bridge": { target: "http://127.0.0.1:8420", ws: true },
      "/api": { target: "http://127.0.0.1:8420" },
    },
  },
  test: { include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"] },
});
