#!/usr/bin/env node
// Makes a checkout ready to run: installs what package-lock.json names and builds, each only when it is out of date.
// `node scripts/setup.mjs bench` also prepares the benchmarks, whose peers live in bench/package.json,
// `node scripts/setup.mjs openapi` installs the tools of test/openapi, `node scripts/setup.mjs interop` those of
// test/interop/program, `node scripts/setup.mjs api` those of scripts/api, and `node scripts/setup.mjs harness` builds the programs of
// test/cluster, test/crash, test/faults, test/fuzz, test/mutants and test/soak.
// Prints one line for each of the two. What npm and the build say themselves is shown only if they fail.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Runs a program, with a line that says what it is for and how long it took. Ends this process if it fails. */
async function step(name, what, command, args, cwd = root) {
  const isTerminal = process.stdout.isTTY;
  const line = `${name.padEnd(8)} ${what}`;
  // On a terminal the line is there while the program runs, and is completed at its end.
  if (isTerminal) process.stdout.write(`${line} …`);
  const started = Date.now();
  const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const said = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => said.push(data));
  const [code] = await new Promise((resolve) => {
    child.on("error", (error) => resolve([error.message]));
    child.on("close", (status, signal) => resolve([status ?? signal]));
  });
  const seconds = Math.max(1, Math.round((Date.now() - started) / 1000));
  const result = code === 0 ? `in ${seconds} s` : `failed (${code})`;
  process.stdout.write(`${isTerminal ? "\r\x1b[K" : ""}${line} ${result}\n`);
  if (code === 0) return;
  process.stderr.write(Buffer.concat(said));
  process.exit(1);
}

async function install(folder) {
  const lock = join(folder, "package-lock.json");
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  const what = folder === root ? "dependencies" : `dependencies of ${relative(root, folder)}`;
  await step("install", what, "npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], folder);
}

function* files(path) {
  if (!existsSync(path)) return;
  if (statSync(path).isFile()) yield path;
  else
    for (const name of readdirSync(path).sort())
      if (!["node_modules", "dist", "build"].includes(name) && name !== "kernel.generated.ts")
        yield* files(join(path, name));
}

/** Runs a program that builds `folder`, unless `folder/.built` already holds the hash of these sources. */
async function build(folder, sources, command, args) {
  const hash = createHash("sha256");
  for (const source of sources)
    for (const file of files(join(root, source))) hash.update(file).update(readFileSync(file));
  const digest = hash.digest("hex");
  const stamp = join(folder, ".built");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return;
  await step("build", relative(root, folder), command, args);
  mkdirSync(folder, { recursive: true });
  writeFileSync(stamp, digest);
}

const tsc = join(root, "node_modules", ".bin", "tsc");

await install(root);
const built = ["wasm", "engine", "server", "tsconfig.json", "package-lock.json", "scripts"];
await build(join(root, "dist"), built, process.execPath, ["scripts/build.mjs"]);
if (process.argv[2] === "bench") {
  await install(join(root, "bench"));
  await build(join(root, "bench", "dist"), ["bench", "dist/.built"], tsc, ["--project", "bench/tsconfig.json"]);
}
if (process.argv[2] === "openapi") await install(join(root, "test", "openapi"));
if (process.argv[2] === "api") await install(join(root, "scripts", "api"));
if (process.argv[2] === "interop") await install(join(root, "test", "interop", "program"));
if (process.argv[2] === "harness")
  await build(join(root, "test", "build"), ["test", "bench", "dist/.built"], tsc, [
    "--project",
    "test/harness.tsconfig.json",
  ]);
