/** Builds the recorder, and gives the environment in which a process is recorded. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { DIST } from "../../reliability/planted.js";

/** Where the sources of the harness are; it may itself run compiled, elsewhere. */
export const SOURCES = join(DIST, "..", "test", "powerloss");
/** Microseconds that a flush takes. */
const FLUSH_US = 1_500;

/**
 * Compiles the recorder into a folder.
 * @returns path of the library
 * @throws Error if there is no C compiler
 */
export function buildRecorder(folder: string): string {
  const library = join(folder, "recorder.so");
  const source = join(SOURCES, "record", "recorder.c");
  const args = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source, "-ldl", "-lpthread"];
  const { error, status, stderr } = spawnSync("cc", args, { encoding: "utf8" });
  if (error) throw new Error("There is no C compiler, which the recorder needs: apt-get install gcc libc6-dev.");
  if (status) throw new Error(`The recorder does not compile:\n${stderr}`);
  return library;
}

/** The environment of a process whose changes below `root` are added to the file `trace`. */
export const recorded = (library: string, root: string, trace: string): NodeJS.ProcessEnv => ({
  LD_PRELOAD: library,
  POWERLOSS_ROOT: root,
  POWERLOSS_TRACE: trace,
  POWERLOSS_FLUSH_US: String(FLUSH_US),
  // The recorder sees calls of the C library only.
  UV_USE_IO_URING: "0",
});

/** The environment of a process that writes files which nobody keeps: it waits for no disk. */
export const unflushed = (library: string): NodeJS.ProcessEnv => ({ LD_PRELOAD: library });
