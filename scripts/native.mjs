#!/usr/bin/env node
// Writes engine/native/known.generated.ts: the SHA-256 of every binary that the native dependencies publish, for every platform.
//   node scripts/native.mjs
// Run it after a change to one of the versions in package.json, and read what changed. It fetches the packages of other platforms with
// `npm pack`, in the versions that package-lock.json names, and refuses one that is not what the lock file says it is.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const FILE = join(root, "engine", "native", "known.generated.ts");
/** Each package whose code loads a binary, and whose the packages are that hold it. */
const HOLDERS = {
  lmdb: /^node_modules\/@lmdb\/lmdb-/,
  "msgpackr-extract": /^node_modules\/@msgpackr-extract\/msgpackr-extract-/,
  "sodium-native": /^node_modules\/sodium-native$/,
  "uWebSockets.js": /^node_modules\/uWebSockets\.js$/,
};

const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
const scratch = mkdtempSync(join(tmpdir(), "cairnlog-native-"));

function* binaries(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* binaries(path);
    else if (entry.name.endsWith(".node")) yield path;
  }
}

/** The hash of each binary of the package that the lock file has at `place`. */
function hashesOf(place) {
  const { name = place.replace("node_modules/", ""), version, integrity } = packages[place];
  const [packed] = JSON.parse(
    execFileSync("npm", ["pack", "--json", "--pack-destination", scratch, `${name}@${version}`], {
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
      stdio: ["ignore", "pipe", "ignore"],
    }),
  );
  const archive = readFileSync(join(scratch, packed.filename));
  const found = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
  if (found !== integrity) throw new Error(`${name}@${version} is not what package-lock.json names`);
  const folder = mkdtempSync(join(scratch, "package-"));
  execFileSync("tar", ["-xzf", join(scratch, packed.filename), "-C", folder, "--strip-components=1"]);
  return [...binaries(folder)].map((path) => [
    `${name}@${version}/${relative(folder, path).split(sep).join("/")}`,
    createHash("sha256").update(readFileSync(path)).digest("hex"),
  ]);
}

try {
  const lines = Object.entries(HOLDERS).flatMap(([name, holder]) => {
    const places = Object.keys(packages).filter((place) => holder.test(place));
    const hashes = places.flatMap(hashesOf).sort(([a], [b]) => (a < b ? -1 : 1));
    const key = /^\w+$/.test(name) ? name : `"${name}"`;
    return [`  ${key}: {`, ...hashes.map(([file, hash]) => `    "${file}":\n      "${hash}",`), "  },"];
  });
  const head = `/**
 * The SHA-256 of every binary that the native dependencies publish, by the package whose code loads it. Written by
 * \`scripts/native.mjs\`.
 */
// biome-ignore format: as the script writes it
export const KNOWN_BINARIES = {
`;
  writeFileSync(
    FILE,
    `${head}${lines.join("\n")}\n} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;\n`,
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
