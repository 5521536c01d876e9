#!/usr/bin/env node
// Builds the package: AssemblyScript kernels → base64 in wasm/kernel.generated.ts → TypeScript → dist/, bundles of libraries, the explorer.
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleLibraries } from "./bundles.mjs";
import { flattenDeclarations } from "./declarations.mjs";
import { buildExplorer } from "./explorer.mjs";
import { addOwnBinaries } from "./uws.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, "node_modules", ".bin", name);

/** Runs a program that says something only if it fails. */
function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}`))));
  });
}

const kernels = { simd: ["--enable", "simd"], scalar: ["--disable", "simd"] };
const scratch = mkdtempSync(join(tmpdir(), "cairnlog-wasm-"));

async function kernel(name, features) {
  const out = join(scratch, `${name}.wasm`);
  const source = join("wasm", "assembly", `${name}.ts`);
  await run(bin("asc"), [source, "-o", out, "-O3", "--noAssert", "--runtime", "stub", ...features]);
  return `export const ${name}: string =\n  "${readFileSync(out).toString("base64")}";\n`;
}

try {
  const encoded = await Promise.all(Object.entries(kernels).map(([name, features]) => kernel(name, features)));
  const head =
    "// Written by scripts/build.mjs from wasm/assembly; the kernels travel as text so that browsers need no fetch.\n";
  writeFileSync(join(root, "wasm", "kernel.generated.ts"), head + encoded.join(""));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function compile() {
  await run(bin("tsc"), ["--project", "tsconfig.json"]);
  cpSync(join(root, "server/explorer/styles/tokens.css"), join(root, "dist/server/http/docs/tokens.css"));
  await addOwnBinaries();
  await flattenDeclarations();
  await bundleLibraries();
}

rmSync(join(root, "dist"), { recursive: true, force: true });
// The explorer is built from its sources, beside the compiler.
await Promise.all([compile(), buildExplorer()]);
