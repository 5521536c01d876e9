#!/usr/bin/env node
// Removes the binaries of uWebSockets.js for other platforms and other versions of Node: 260 MB of 262.
//   node node_modules/cairnlog/scripts/slim.mjs [--dry-run]
// The package has one binary for each platform and version of Node, and npm installs them all. The one that this Node loads
// stays; nothing is removed unless it is there and loads. After a change to another version of Node, install the package
// again (npm install --force), or the service uses node:http, and says so when it starts.
import { readdirSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const BINARY = /^uws_[a-z0-9]+_[a-z0-9]+_\d+\.node$/;
const isDry = process.argv.includes("--dry-run");
const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;

function end(sentence) {
  console.error(`slim: ${sentence}`);
  process.exit(1);
}

const unknown = process.argv.slice(2).find((argument) => argument !== "--dry-run");
if (unknown !== undefined) end(`${unknown} is not an option; there is only --dry-run`);

const require = createRequire(import.meta.url);
let folder;
try {
  folder = dirname(require.resolve("uWebSockets.js/package.json"));
} catch {
  end("uWebSockets.js is not installed");
}
const binaries = readdirSync(folder).filter((name) => BINARY.test(name));
const own = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
if (!binaries.includes(own)) end(`there is no ${own}, so nothing was removed: the service uses node:http here`);
try {
  require("uWebSockets.js");
} catch (error) {
  const [reason] = error.message.split("\n").filter((line) => line.startsWith("Error: "));
  end(`${own} does not load, so nothing was removed${reason === undefined ? "" : ` (${reason})`}`);
}
const others = binaries.filter((name) => name !== own);
const freed = others.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
if (!isDry) for (const name of others) rmSync(join(folder, name));
const what = `${others.length} binaries for other platforms and versions of Node, ${megabytes(freed)}`;
console.log(`${isDry ? "would remove" : "removed"} ${what}; ${own} stays`);
