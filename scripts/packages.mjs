#!/usr/bin/env node
// Makes the packages that are published, in dist/packages, from the build: `npm run packages`.
//   cairnlog           what `npm pack` puts into the package of the checkout: engine, service, command, documentation
//   @cairnlog/verify   engine/verify, with noble as its only dependency
//   @cairnlog/client   server/client with what it imports; the schemas of engine/contract as plain data, without TypeBox
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { schemaModule } from "./schemas.mjs";
import { writeArchives } from "./uws.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const target = join(dist, "packages");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** A relative import or export, in JavaScript and in declarations. */
const IMPORT = /(\bfrom |\bimport\(|^import )"([^"]+)"/gm;
const DECLARED = { ".js": ".d.ts" };

/** The packages beside `cairnlog`: their entry points as files of the build. */
const PARTS = {
  verify: {
    name: "@cairnlog/verify",
    description:
      "Verify receipts, proofs and tree heads of a cairnlog transparency log, offline, in Node and browsers.",
    exports: { ".": "engine/verify/index", "./claims": "engine/verify/claims/claims" },
  },
  client: {
    name: "@cairnlog/client",
    description: "Client of a cairnlog transparency log that verifies every answer, for Node and browsers.",
    exports: { ".": "server/client/index", "./static": "server/client/static/log" },
  },
};

/** What a module of `engine/contract` holds, as data. */
const contractModule = async (path) => schemaModule(await import(join(dist, `${path}.js`)));

/** In the place of the kernels in WebAssembly: hashes in JavaScript, which are a third of the size. */
const PORTABLE = {
  "engine/verify/bytes/kernel.js": 'export { kernel } from "./portable-kernel.js";\n',
  "wasm/index.d.ts": 'export type { TreeVersion } from "./contract.js";\n',
};

/** Copies a module and everything that it imports. @returns the packages that it needs */
async function copyModules(entries, folder) {
  const needed = new Set();
  const seen = new Set();
  const queue = entries.flatMap((entry) => [`${entry}.js`, `${entry}.d.ts`]);
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    const extension = file.endsWith(".d.ts") ? ".d.ts" : ".js";
    const path = file.slice(0, -extension.length);
    // This one has functions, not schemas.
    const isContract = extension === ".js" && /^engine\/contract\/(?!check$)/.test(path);
    let code = PORTABLE[file] ?? (isContract ? await contractModule(path) : readFileSync(join(dist, file), "utf8"));
    code = code.replace(/^\/\/# sourceMappingURL=.*\n?/gm, "");
    if (!isContract)
      code = code.replace(IMPORT, (whole, _, imported) => {
        if (imported.startsWith(".")) queue.push(join(dirname(path), imported).replace(/\.js$/, extension));
        else
          needed.add(
            imported
              .split("/")
              .slice(0, imported.startsWith("@") ? 2 : 1)
              .join("/"),
          );
        return whole;
      });
    const out = join(folder, file);
    mkdirSync(dirname(out), { recursive: true });
    writeFileSync(out, code);
  }
  return [...needed].sort();
}

async function part(short, { name, description, exports }) {
  const folder = join(target, short);
  mkdirSync(folder, { recursive: true });
  const needed = await copyModules(Object.values(exports), folder);
  const foreign = needed.filter((dependency) => !dependency.startsWith("@noble/"));
  if (foreign.length) throw new Error(`${name} would depend on ${foreign.join(", ")}`);
  const { version, keywords, license, repository, type, engines, dependencies } = manifest;
  const entries = Object.entries(exports).map(([entry, path]) => [
    entry,
    { types: `./${path}${DECLARED[".js"]}`, default: `./${path}.js` },
  ]);
  const described = {
    ...{ name, version, description, keywords, license, repository, type, engines, sideEffects: false },
    exports: { ...Object.fromEntries(entries), "./package.json": "./package.json" },
    dependencies: Object.fromEntries(needed.map((dependency) => [dependency, dependencies[dependency]])),
    publishConfig: { access: "public" },
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(described, null, 2)}\n`);
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  cpSync(join(root, "docs", "packages", `${short}.md`), join(folder, "README.md"));
}

/** The package of the checkout, without what only a checkout needs. */
async function whole() {
  await writeArchives();
  const scratch = mkdtempSync(join(tmpdir(), "cairnlog-pack-"));
  try {
    const packing = ["pack", "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", scratch];
    const [{ filename }] = JSON.parse(execFileSync("npm", packing, { cwd: root, encoding: "utf8" }));
    const folder = join(target, "cairnlog");
    mkdirSync(folder, { recursive: true });
    execFileSync("tar", ["-xzf", join(scratch, filename), "--strip-components=1", "-C", folder]);
    const { scripts: _, devDependencies: __, overrides: ___, ...published } = manifest;
    writeFileSync(join(folder, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (!existsSync(join(dist, "engine", "index.js"))) throw new Error("There is no build: run `npm run build` first.");
rmSync(target, { recursive: true, force: true });
await whole();
for (const [short, described] of Object.entries(PARTS)) await part(short, described);
console.log(
  `packages in ${relative(process.cwd(), target)}: cairnlog, ${Object.values(PARTS)
    .map(({ name }) => name)
    .join(", ")}`,
);
