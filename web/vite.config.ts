import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The page is served at `/` by the gateway, from inside the wheel. Nothing is inlined: the page's
// Content-Security-Policy allows scripts, styles and images from its own origin alone.
export default defineConfig({
  plugins: [react()],
  base: "/",
  build: {
    outDir: process.env.DRAGOMAN_WEB_OUT ?? "dist",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // the first with light-dark()
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 900,
  },
  server: {
    proxy: {
      "/bridge": { target: "http://127.0.0.1:8420", ws: true },
      "/api": { target: "http://127.0.0.1:8420" },
    },
  },
  test: { include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"] },
});
