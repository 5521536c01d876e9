/**
 * Loaded into a service under test (`--import`). Measures how long its event loop is blocked. During a measurement the
 * loop never sleeps, and each of its turns is timed by the processor time of the main thread, so that other work of the
 * machine does not count.
 *
 * On the socket LOOP_PROBE, each line is answered with the longest turn since the last line, in milliseconds.
 */
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { isMainThread } from "node:worker_threads";

/** Nanoseconds of processor time of this thread. If the system does not report it, the elapsed time. */
function busy() {
  try {
    return Number(readFileSync("/proc/thread-self/schedstat", "latin1").split(" ")[0]);
  } catch {
    return Number(process.hrtime.bigint());
  }
}

let longest = 0;
let listeners = 0;
let before = 0;

function turn() {
  const now = busy();
  longest = Math.max(longest, now - before);
  before = busy();
  if (listeners) setImmediate(turn);
}

if (isMainThread) {
  rmSync(process.env.LOOP_PROBE, { force: true });
  createServer((socket) => {
    listeners++;
    if (listeners === 1) {
      before = busy();
      setImmediate(turn);
    }
    socket.setEncoding("latin1").on("data", () => {
      socket.write(`${longest / 1e6}\n`);
      longest = 0;
    });
    socket.on("error", () => {}).on("close", () => listeners--);
  })
    .listen(process.env.LOOP_PROBE)
    .unref();
}
