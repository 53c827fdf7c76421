// SPDX-License-Identifier: MIT
// node build.mjs DIR: the page's files into DIR. tools/embed-page runs it.
import { copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];

await esbuild.build({
  entryPoints: { app: join(here, "src/app.tsx") },
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none",
  target: ["chrome109", "firefox115", "safari16"],
  jsx: "automatic",
  jsxImportSource: "preact",
  outdir: out,
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg", "pair.html", "pair.css"]) copyFileSync(join(here, "src", name), join(out, name));
