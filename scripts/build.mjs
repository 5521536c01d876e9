#!/usr/bin/env node
// Builds the package: AssemblyScript kernels → base64 in wasm/kernel.generated.ts → TypeScript → dist/, TypeBox, the explorer.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildExplorer } from "./explorer.mjs";
import { bundleTypebox } from "./typebox.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, "node_modules", ".bin", name);
const run = (command, args) => execFileSync(command, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });

const kernels = { simd: ["--enable", "simd"], scalar: ["--disable", "simd"] };
const scratch = mkdtempSync(join(tmpdir(), "cairnlog-wasm-"));
try {
  const encoded = Object.entries(kernels).map(([name, features]) => {
    const out = join(scratch, `${name}.wasm`);
    const source = join("wasm", "assembly", `${name}.ts`);
    run(bin("asc"), [source, "-o", out, "-O3", "--noAssert", "--runtime", "stub", ...features]);
    return `export const ${name}: string =\n  "${readFileSync(out).toString("base64")}";\n`;
  });
  const head =
    "// Written by scripts/build.mjs from wasm/assembly; the kernels travel as text so that browsers need no fetch.\n";
  writeFileSync(join(root, "wasm", "kernel.generated.ts"), head + encoded.join(""));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

rmSync(join(root, "dist"), { recursive: true, force: true });
run(bin("tsc"), ["--project", "tsconfig.json"]);
cpSync(join(root, "server/explorer/styles/tokens.css"), join(root, "dist/server/http/docs/tokens.css"));
await bundleTypebox();
await buildExplorer();
