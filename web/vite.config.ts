// Two bundles from one source: `report.js`, which `elephan report` embeds into its page, and `app.js`, which `elephan ui` serves.
// `vite build --mode report` and `--mode app` write into the Python package, which contains the bundles.
import { defineConfig } from "vite";

export default defineConfig(({ mode }) => ({
  build: {
    outDir: "../python/elephan/ui/static",
    emptyOutDir: false,
    assetsInlineLimit: 100_000,
    target: "es2022",
    lib: {
      entry: `src/${mode}.ts`,
      name: "elephan",
      formats: ["iife"],
      fileName: () => `${mode}.js`,
      cssFileName: mode,
    },
  },
}));
