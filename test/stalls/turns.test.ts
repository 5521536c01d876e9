import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { probed, takeTurnsOf } from "../../bench/turns/turns.js";
import { DIST } from "../reliability/planted.js";
import { temporaryFolder } from "../server/harness.js";

/** A process with a worker thread. Told to, one of them computes for as long, or sleeps for as long, in one turn. */
const PROCESS = `
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
const spent = () => Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e6;
function compute(milliseconds) {
  for (const until = spent() + milliseconds; spent() < until; );
}
const obey = async ({ kind, milliseconds }) => {
  if (kind === "compute") compute(milliseconds);
  else if (kind === "block") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
  else await sleep(milliseconds);
};
if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url));
  worker.on("message", () => process.send("done"));
  process.on("message", async (order) => {
    if (order.where === "worker") return worker.postMessage(order);
    await obey(order);
    process.send("done");
  });
  worker.on("online", () => process.send("ready"));
} else parentPort.on("message", async (order) => { await obey(order); parentPort.postMessage("done"); });
`;

const TURN_MS = 100;
/** What the kernel's ticks leave open, and what a process does beside. */
const SLACK_MS = 50;

test("the longest turn is that of the thread that computes, by its processor time and not by the clock", async () => {
  const folder = temporaryFolder();
  const [module, turns] = [join(folder, "process.mjs"), join(folder, "turns")];
  writeFileSync(module, PROCESS);
  const child = fork(module, { env: { ...process.env, ...probed(dirname(DIST), turns, true) }, execArgv: [] });
  try {
    await once(child, "message");
    const during = async (kind: string, where: string) => {
      await takeTurnsOf(turns);
      child.send({ kind, where, milliseconds: TURN_MS });
      await once(child, "message");
      const taken = await takeTurnsOf(turns);
      expect(taken).toHaveLength(2);
      expect(taken.every(({ count }) => count > 0)).toBe(true);
      return taken.filter(({ milliseconds }) => milliseconds > SLACK_MS);
    };
    for (const [where, name] of [
      ["main", /^main$/],
      ["worker", /-1$/],
    ] as const) {
      const [turn, ...others] = await during("compute", where);
      expect(turn?.thread).toMatch(name);
      expect(turn?.stack.some(([called]) => called.startsWith("compute "))).toBe(true);
      expect(others).toEqual([]);
      for (const kind of ["sleep", "block"]) expect(await during(kind, where)).toEqual([]);
    }
  } finally {
    child.kill();
  }
});
