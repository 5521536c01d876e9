/**
 * Bundles TypeBox into a few files of the package: it is installed as 680 files, and Node takes 0.3 s of CPU to load
 * them.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const server = join(root, "dist", "server");
const folder = join(server, "typebox");

/** Module that the compiled service imports → name of the file that replaces it. */
const FILES = { typebox: "type", "typebox/value": "value", "typebox/compile": "compile" };

/** Bundles TypeBox and rewrites the imports in `dist/server`. The declarations still import the dependency. */
export async function bundleTypebox() {
  const entry = Object.fromEntries(
    Object.entries(FILES).map(([imported, name]) => [name, fileURLToPath(import.meta.resolve(imported))]),
  );
  const license = readFileSync(join(root, "node_modules", "typebox", "license"), "utf8").trim();
  await build({
    configFile: false,
    root,
    publicDir: false,
    logLevel: "warn",
    build: {
      outDir: folder,
      target: "es2023",
      minify: false,
      lib: { entry, formats: ["es"] },
      rollupOptions: {
        output: { banner: `/*! ${license} */`, entryFileNames: "[name].js", chunkFileNames: "[name].js" },
      },
    },
  });
  for (const name of readdirSync(server, { recursive: true })) {
    const path = join(server, name);
    // The explorer has its own bundle, which may be being built meanwhile.
    if (name.endsWith(".js") && dirname(path) !== folder && !name.startsWith("explorer")) redirect(path);
  }
}

function redirect(path) {
  const code = readFileSync(path, "utf8");
  const redirected = code.replaceAll(/(?<= from )"(typebox(?:\/[^"]*)?)"(?=;$)/gm, (_, imported) => {
    if (!Object.hasOwn(FILES, imported)) throw new Error(`${path} imports ${imported}, which is not in the bundle`);
    const target = relative(dirname(path), join(folder, `${FILES[imported]}.js`));
    return JSON.stringify(target.startsWith(".") ? target : `./${target}`);
  });
  if (redirected !== code) writeFileSync(path, redirected);
}
