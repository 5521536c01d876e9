#!/usr/bin/env node
// Makes a checkout ready to run: installs what package-lock.json names and builds, each only when it is out of date.
// `node scripts/setup.mjs bench` also prepares the benchmarks, whose peers live in bench/package.json, and
// `node scripts/setup.mjs harness` the programs of test/crash, test/faults, test/fuzz, test/mutants and test/soak.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const run = (command, args, cwd = root) =>
  execFileSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });

function install(folder) {
  const lock = join(folder, "package-lock.json");
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  run("npm", ["ci", "--no-audit", "--no-fund"], folder);
}

function* files(path) {
  if (!existsSync(path)) return;
  if (statSync(path).isFile()) yield path;
  else
    for (const name of readdirSync(path).sort())
      if (!["node_modules", "dist", "build"].includes(name) && name !== "kernel.generated.ts")
        yield* files(join(path, name));
}

/** Runs `make` unless `folder/.built` already holds the hash of these sources. */
function build(folder, sources, make) {
  const hash = createHash("sha256");
  for (const source of sources)
    for (const file of files(join(root, source))) hash.update(file).update(readFileSync(file));
  const digest = hash.digest("hex");
  const stamp = join(folder, ".built");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return;
  make();
  mkdirSync(folder, { recursive: true });
  writeFileSync(stamp, digest);
}

install(root);
const built = ["wasm", "engine", "server", "tsconfig.json", "package-lock.json", "scripts"];
build(join(root, "dist"), built, () => run(process.execPath, ["scripts/build.mjs"]));
if (process.argv[2] === "bench") {
  install(join(root, "bench"));
  build(join(root, "bench", "dist"), ["bench", "dist/.built"], () =>
    run(join(root, "node_modules", ".bin", "tsc"), ["--project", "bench/tsconfig.json"]),
  );
}
if (process.argv[2] === "harness")
  build(join(root, "test", "build"), ["test", "bench", "dist/.built"], () =>
    run(join(root, "node_modules", ".bin", "tsc"), ["--project", "test/harness.tsconfig.json"]),
  );
