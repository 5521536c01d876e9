/**
 * Bundles libraries that are loaded at each start into a few files of the package. TypeBox is installed as 680 files, and
 * Node takes 0.3 s of CPU to load them. commander loads what it needs to start other programs, which costs as much as all
 * the rest of it. prom-client would install 5 MB, of which 50 KB are used.
 */

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const server = join(dist, "server");
const folder = join(dist, "engine", "typebox");
const COMMANDER = join(server, "cli", "line", "commander.js");
const METRICS = join(server, "http", "observing", "prom-client.js");

/** Module that the compiled service imports → name of the file that replaces it. */
const FILES = { typebox: "type", "typebox/value": "value", "typebox/compile": "compile" };

/** Bundles them, and rewrites their imports in the build. The declarations still import the dependencies. */
export async function bundleLibraries() {
  const entry = Object.fromEntries(
    Object.entries(FILES).map(([imported, name]) => [name, fileURLToPath(import.meta.resolve(imported))]),
  );
  await bundle(entry, folder, license("typebox", "license"));
  const commander = { commander: join(root, "node_modules", "commander", "esm.mjs") };
  await bundle(commander, dirname(COMMANDER), license("commander", "LICENSE"), {
    plugins: [nodeModules],
    minify: true,
  });
  const licences = ["prom-client", "tdigest", "bintrees"].map((name) => license(name, "LICENSE")).join("\n\n");
  await bundle({ "prom-client": METRICS_ENTRY }, dirname(METRICS), licences, {
    plugins: [nodeModules, metrics],
    minify: true,
  });
  for (const name of readdirSync(dist, { recursive: true })) {
    const path = join(dist, name);
    // The explorer has its own bundle, which may be being built meanwhile.
    if (
      name.endsWith(".js") &&
      dirname(path) !== folder &&
      path !== COMMANDER &&
      path !== METRICS &&
      !name.startsWith(join("server", "explorer"))
    )
      redirect(path);
  }
}

const license = (name, file) => readFileSync(join(root, "node_modules", name, file), "utf8").trim();

/**
 * commander and prom-client require modules of Node, and a module of the bundle must import them. What starts other programs is left out:
 * it is for commands that are programs of their own, which do not occur here.
 */
const nodeModules = {
  name: "node-modules",
  enforce: "pre",
  resolveId(id, importer) {
    const name = builtinModules.includes(id) ? `node:${id}` : id;
    if (!name.startsWith("node:")) return undefined;
    return importer?.startsWith("\0") ? { id: name, external: true } : `\0${name}`;
  },
  load(id) {
    if (!id.startsWith("\0node:")) return undefined;
    const name = JSON.stringify(id.slice(1));
    return id.endsWith(":child_process")
      ? "export default {};"
      : `export * from ${name}; export { default } from ${name};`;
  },
};

/**
 * The classes of prom-client that are used, by name: it is a CommonJS module. Its default metrics do not occur here, nor does
 * the library that one of them needs.
 */
const METRICS_ENTRY = join(root, "metrics.js");
const METRICS_MODULES = {
  [METRICS_ENTRY]: 'export { Counter, Gauge, Histogram, Registry } from "prom-client";',
  "@opentelemetry/api": "export default {};",
};
const metrics = {
  name: "metrics",
  enforce: "pre",
  resolveId: (id) => (Object.hasOwn(METRICS_MODULES, id) ? `\0metrics:${id}` : undefined),
  load: (id) => METRICS_MODULES[id.replace("\0metrics:", "")],
};

function bundle(entry, outDir, licence, { plugins = [], minify = false } = {}) {
  return build({
    configFile: false,
    root,
    publicDir: false,
    logLevel: "warn",
    plugins,
    build: {
      outDir,
      emptyOutDir: false,
      target: "es2023",
      minify,
      lib: { entry, formats: ["es"] },
      rollupOptions: {
        output: { banner: `/*! ${licence} */`, entryFileNames: "[name].js", chunkFileNames: "[name].js" },
      },
    },
  });
}

function redirect(path) {
  const code = readFileSync(path, "utf8");
  const redirected = code.replaceAll(
    /(?<= from )"((?:typebox|commander|prom-client)(?:\/[^"]*)?)"(?=;$)/gm,
    (_, imported) => {
      const typebox = Object.hasOwn(FILES, imported) && join(folder, `${FILES[imported]}.js`);
      const file = { commander: COMMANDER, "prom-client": METRICS }[imported] ?? typebox;
      if (!file) throw new Error(`${path} imports ${imported}, which is not in a bundle`);
      const target = relative(dirname(path), file);
      return JSON.stringify(target.startsWith(".") ? target : `./${target}`);
    },
  );
  if (redirected !== code) writeFileSync(path, redirected);
}
