/** The end of `cairnlog serve`: in time, whatever hangs. */
import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { stderrLines } from "../../http/observing/stderr.js";
import type { RunningServer } from "../../index.js";

const GUARD = fileURLToPath(new URL("./guard.js", import.meta.url));
/** Milliseconds in which the process may end by itself when all is closed, although something works on in it. */
const LINGER_MS = 2_000;
/** The share of the time after which it exits in any case. The rest is for the exit. */
const EXIT_SHARE = 0.95;
/** Milliseconds in which it may do so if that is a standard stream that nobody reads. */
const STREAM_MS = 100;
/** Node's kinds of what standard streams wait for. */
const STREAMS = new Set(["TTYWrap", "PipeWrap", "WriteWrap"]);
/** Words for Node's kinds of what keeps a process running. */
const WORDS: Readonly<Record<string, string>> = {
  FSReqCallback: "a file operation",
  FSReqPromise: "a file operation",
  GetAddrInfoReqWrap: "the look-up of a name",
  MessagePort: "a thread",
  TCPSocketWrap: "a connection",
  Timeout: "a timer",
  Worker: "a thread",
};

/**
 * Stops the service. If parts of it hang, or if something keeps the process running after that, it says what, and exits.
 * @param seconds after which the process has ended in any case
 * @returns the exit code
 */
export async function stopInTime(server: Pick<RunningServer, "close">, seconds: number): Promise<number> {
  const last = performance.now() + seconds * 1000 * EXIT_SHARE;
  // Before anything is closed: this thread may be what hangs.
  const guard = startGuard(seconds * 1000);
  const exit = (hanging: readonly string[], code: number): never => {
    const current = hanging.join(", ");
    guard(current || "the exit");
    if (hanging.length > 0) {
      const rest = code === 0 ? "nothing that it had accepted is lost" : "writes that it had accepted are not decided";
      stderrLines().write(`cairnlog: the service was ended while this hung: ${current}; ${rest}\n`);
    }
    process.exit(code);
  };
  try {
    const { hanging, isSettled } = await server.close(guard);
    if (hanging.length > 0) exit(hanging, isSettled ? 0 : 1);
    return 0;
  } finally {
    const patience = Math.min(performance.now() + LINGER_MS, last);
    setInterval(() => {
      const kinds = lingering();
      if (kinds.length === 0 || performance.now() >= patience) exit(kinds, Number(process.exitCode ?? 0));
    }, STREAM_MS).unref();
  }
}

/** What keeps the process running beside standard streams, each kind once. */
function lingering(): string[] {
  const kinds = process.getActiveResourcesInfo().filter((kind) => !STREAMS.has(kind));
  return [...new Set(kinds.map((kind) => WORDS[kind] ?? kind))];
}

/**
 * Starts a process that kills this one after so many milliseconds, unless it has ended. An exit waits for the threads of the
 * process. One that is inside a system call, such as the look-up of a name, cannot be interrupted by Node.
 * @returns a function that says what is being closed
 */
function startGuard(milliseconds: number): (part: string) => void {
  const guard = spawn(process.execPath, [GUARD, `${process.pid}`, `${Math.max(0, milliseconds)}`], {
    // Under the number 2 libuv would have stderr block, also for this process, which shares it.
    stdio: ["pipe", "ignore", "ignore", 2],
    // A signal from the keyboard goes to all processes of the terminal's group.
    detached: true,
    cwd: "/",
    env: {},
  });
  guard.on("error", () => {});
  const stdin = guard.stdin as Socket;
  stdin.on("error", () => {});
  guard.unref();
  stdin.unref();
  return (part) => void stdin.write(`${part}\n`);
}
