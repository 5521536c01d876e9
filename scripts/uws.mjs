#!/usr/bin/env node
// The binaries of uWebSockets.js that the package has. npm would install one for each platform and version of Node: 257 MB.
//   node scripts/uws.mjs    writes dist/uws/*.br for the package that is published; `npm pack` runs it
// An archive holds the binaries of one platform for the supported versions of Node. They differ little, so it is a fifth of their
// size. `server/http/servers/binary.ts` takes the one that it needs out of it. A build leaves the binaries of this platform as
// they are, so a checkout has nothing to take out. Both refuse a binary whose hash is not in `engine/native/known.generated.ts`.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, linkSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const library = join(root, "node_modules", "uWebSockets.js");
const folder = join(root, "dist", "uws");
const INDEX = join(folder, "index.json");

/** Those of which the library has a binary for each version of Node below. */
const PLATFORMS = ["linux_x64", "linux_arm64", "darwin_x64", "darwin_arm64", "win32_x64"];
/** Node 24, 22 and 20, by `process.versions.modules`; the library has none for Node 26. The newest is found soonest. */
const ABIS = ["137", "127", "115"];

/** The content of a binary. @throws Error if it is not the published one */
function checked(name, known) {
  const bytes = readFileSync(join(library, name));
  const digest = createHash("sha256").update(bytes).digest("hex");
  if (!known.has(digest)) throw new Error(`${name} of uWebSockets.js is not what was published: SHA-256 ${digest}`);
  return bytes;
}

async function prepare() {
  const { KNOWN_BINARIES } = await import("../dist/engine/native/known.generated.js");
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(library, "LICENSE"), join(folder, "LICENSE"));
  return new Set(Object.values(KNOWN_BINARIES["uWebSockets.js"]));
}

/** Puts the binaries of this platform into the build, as links where the file system has them. */
export async function addOwnBinaries() {
  const known = await prepare();
  for (const abi of ABIS) {
    const name = `uws_${process.platform}_${process.arch}_${abi}.node`;
    if (!existsSync(join(library, name))) continue;
    checked(name, known);
    try {
      linkSync(join(library, name), join(folder, name));
    } catch {
      copyFileSync(join(library, name), join(folder, name));
    }
  }
}

/** Writes the archives, and where each binary is in them; nothing if this build has them. */
export async function writeArchives() {
  if (existsSync(INDEX)) return;
  const known = await prepare();
  const index = {};
  const compress = promisify(brotliCompress);
  const archives = PLATFORMS.map(async (platform) => {
    const parts = ABIS.map((abi) => checked(`uws_${platform}_${abi}.node`, known));
    let offset = 0;
    for (const [at, part] of parts.entries()) {
      index[`${platform}_${ABIS[at]}`] = { offset, length: part.length };
      offset += part.length;
    }
    const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 };
    writeFileSync(join(folder, `${platform}.br`), await compress(Buffer.concat(parts), { params }));
  });
  await Promise.all(archives);
  writeFileSync(INDEX, `${JSON.stringify(index, null, 2)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!existsSync(join(root, "dist", "engine", "index.js")))
    throw new Error("There is no build: run `npm run build` first.");
  await writeArchives();
}
