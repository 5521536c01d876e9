/** Loaded into a service before it starts (`--import`): makes the part that HANG names hang. HANG_FILE is a path. */
import { existsSync, open } from "node:fs";
import { isMainThread } from "node:worker_threads";

const { HANG, HANG_BUILD, HANG_FILE } = process.env;
const never = () => new Promise(() => {});
const spin = () => {
  for (;;);
};

/** Replaces a method of a class of the build by what `make` gives for it. */
async function replace(file, name, method, make) {
  const { prototype } = (await import(new URL(file, HANG_BUILD).href))[name];
  prototype[method] = make(prototype[method]);
}

const hangs = {
  leaderTasks: () => replace("server/leader-tasks.js", "LeaderTasks", "close", () => never),
  fronts: () => replace("server/front/front.js", "Front", "close", () => never),
  log: () => replace("engine/log/writer.js", "LogWriter", "close", () => never),
  thread: () => replace("server/leader-tasks.js", "LeaderTasks", "close", () => spin),
  // The disk does not answer from the moment on at which the file exists.
  disk: () =>
    replace(
      "engine/journal/ledger.js",
      "Ledger",
      "apply",
      (apply) =>
        function (...given) {
          return existsSync(HANG_FILE) ? never() : apply.apply(this, given);
        },
    ),
  deaf: () => setInterval(() => existsSync(HANG_FILE) && spin(), 10).unref(),
  timer: () => isMainThread && setInterval(() => {}, 2 ** 30),
  // Opening a named pipe for which there is no writer occupies a thread of libuv's pool, and nothing can interrupt it.
  pool: () => isMainThread && open(HANG_FILE, "r", () => {}),
};
// The parent of the service runs this, too.
if (!process.argv[1].endsWith("main.js")) await hangs[HANG]();
