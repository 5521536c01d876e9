// Restores a backup, and says by how many bytes that raised the largest amount of memory that this process had at once: in
// all, pages of mapped files included, and of its own.
import { readFileSync } from "node:fs";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { restore } from "#cairnlog/engine/log/history/restore.js";
import { noProjection } from "#cairnlog/engine/log/write/projection.js";

const [, , from, path] = process.argv;
const peak = () => process.resourceUsage().maxRSS * 1024;
const own = () => Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))[1]) * 1024;
const pool = createPool();
const before = { all: peak(), own: own() };
let mostOwn = 0;
const progress = () => {
  mostOwn = Math.max(mostOwn, own());
};
const { entries } = await restore({
  from,
  path,
  projection: noProjection,
  pool,
  published: [],
  mayFork: true,
  progress,
});
progress();
console.log(JSON.stringify({ entries, all: peak() - before.all, own: mostOwn - before.own }));
await pool.close();
