#!/usr/bin/env node
// Builds the explorer: server/explorer → dist/server/explorer, each file compressed. index.html is the page of a service,
// static.html that of published files, which `cairnlog publish` puts beside them with the parts that it loads (static.json).
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "vite";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const out = join(root, "dist", "server", "explorer");

/**
 * TypeBox's default export is an object with all of it, which a bundler cannot take apart. As a namespace it can: what makes no
 * schema of ours, a parser of TypeScript among it, stays out of the page.
 */
const onlyUsedTypes = {
  name: "only-used-types",
  transform: {
    filter: { id: /\/(?:engine\/contract|server\/explorer)\/.*\.tsx?$/, code: /from "typebox"/ },
    handler: (code) =>
      code.replace(/^import Type(?:, \{[^}]*\})? from "typebox";$/m, 'import * as Type from "typebox";'),
  },
};

/** The page hashes in JavaScript: WebAssembly would be 10 KB more, and some browsers have none. */
const portableKernel = {
  name: "portable-kernel",
  load: {
    filter: { id: /\/engine\/verify\/bytes\/kernel\.ts$/ },
    handler: () => 'export { kernel } from "./portable-kernel.js";',
  },
};

/** Adds `starting.js` as it is: Vite bundles modules only, and an old browser runs none. */
const firstScript = {
  name: "first-script",
  buildStart() {
    const source = readFileSync(join(root, "server", "explorer", "starting.js"), "utf8").replace(/^\/\/.*\n/gm, "");
    this.emitFile({ type: "asset", name: "starting.js", source });
  },
  transformIndexHtml: {
    order: "post",
    handler(_, { bundle }) {
      const { fileName } = Object.values(bundle).find(({ names }) => names?.includes("starting.js"));
      return [{ tag: "script", attrs: { src: `./${fileName}` }, injectTo: "head-prepend" }];
    },
  },
};

/** That of `STRICT_POLICY` in server/http/transport/static.ts, as far as a page can say it: static hosts send no headers of ours. */
const POLICY = [
  "default-src 'none'",
  ...["script-src", "style-src", "connect-src", "font-src", "worker-src"].map((what) => `${what} 'self'`),
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** Says the policy before everything that is loaded. */
const policyOfFiles = {
  name: "policy-of-files",
  transformIndexHtml: {
    order: "post",
    handler: (html, { path }) =>
      path === "/static.html"
        ? html.replace("<head>", `<head>\n    <meta http-equiv="Content-Security-Policy" content="${POLICY}">`)
        : html,
  },
};

/** The names of a page's parts, and of theirs. Each has a hash in it, so that it is nothing else where it stands. */
function partsOf(page, names, textOf) {
  const parts = new Set();
  const follow = (text) => {
    for (const name of names)
      if (!parts.has(name) && text.includes(name)) {
        parts.add(name);
        follow(textOf(name));
      }
  };
  follow(page);
  return [...parts].sort();
}

export async function buildExplorer() {
  await build({
    configFile: false,
    root: join(root, "server", "explorer"),
    // The page is at the root of the service, which a proxy may show below a path, and its files are below explorer/; every
    // name there contains a hash.
    base: "./",
    publicDir: false,
    logLevel: "warn",
    plugins: [{ ...onlyUsedTypes, enforce: "pre" }, portableKernel, firstScript, policyOfFiles],
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: out,
      emptyOutDir: true,
      target: "es2022",
      // No data: URLs, because the content security policy forbids them. Every browser that can run the page preloads
      // modules itself.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      assetsDir: "explorer",
      chunkSizeWarningLimit: 1000,
      // What several views share is one file: ten files of a few hundred bytes take 4 KB more, and as many requests.
      rolldownOptions: {
        input: ["index.html", "static.html"].map((name) => join(root, "server", "explorer", name)),
        output: {
          codeSplitting: {
            groups: [
              { name: "shared", test: /server\/explorer\/(?:components|look|search|state)\//, minShareCount: 2 },
            ],
          },
        },
      },
    },
  });
  const textOf = (name) => readFileSync(join(out, name), "utf8");
  const names = readdirSync(join(out, "explorer"));
  const parts = partsOf(textOf("static.html"), names, (name) => textOf(join("explorer", name)));
  compress(out);
  writeFileSync(join(out, "static.json"), JSON.stringify(parts));
}

/** Replaces every file by `name.br`; the service makes the other encodings of it when a client asks for one. */
function compress(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      compress(path);
      continue;
    }
    const content = readFileSync(path);
    const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
    writeFileSync(`${path}.br`, brotliCompressSync(content, { params }));
    rmSync(path);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildExplorer();
