import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import product from "./vite.config.ts";

// The page that is measured and probed by the browser tests. It has the product's components and build, and is no
// part of the product: a build of its own, in a folder of its own.
export default defineConfig({
  ...product,
  plugins: [react()],
  build: {
    ...product.build,
    outDir: process.env.DRAGOMAN_BENCH_OUT ?? "dist-bench",
    rolldownOptions: {
      ...product.build?.rolldownOptions,
      input: fileURLToPath(new URL("bench.html", import.meta.url)),
    },
  },
});
