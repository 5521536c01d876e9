// Restores a backup, and says by how many bytes that raised the largest amount of memory that this process had at once: pages
// of mapped files, and its own.
import { readFileSync } from "node:fs";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { restore } from "#cairnlog/engine/log/history/restore.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";

const [, , from, path] = process.argv;
function held() {
  const status = readFileSync("/proc/self/status", "utf8");
  const bytes = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)[1]) * 1024;
  return { mapped: bytes("RssFile"), own: bytes("RssAnon") };
}
const pool = createPool();
const before = held();
const most = { ...before };
function progress() {
  const { mapped, own } = held();
  most.mapped = Math.max(most.mapped, mapped);
  most.own = Math.max(most.own, own);
}
// Most of the mapped pages come with merges, between two calls.
const looking = setInterval(progress, 5);
const { entries } = await restore({
  from,
  path,
  projection: noProjection,
  pool,
  published: [],
  mayFork: true,
  progress,
});
clearInterval(looking);
progress();
console.log(JSON.stringify({ entries, mapped: most.mapped - before.mapped, own: most.own - before.own }));
await pool.close();
