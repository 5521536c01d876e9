/** The end of `cairnlog serve`: in time, whatever hangs. */

import type { RunningServer } from "../../index.js";
import { stderrLines } from "../../process/stderr.js";
import { tellParent } from "./parent-connection.js";

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
 * Stops the service. If parts of it hang, or if something keeps the process running after that, it says what, and exits. An exit
 * waits for the threads of the process, and one that is inside a system call, such as the look-up of a name, cannot be interrupted
 * by Node. So the parent process is told what is being closed. It kills this process if it is late.
 * @param seconds after which the process has ended in any case
 * @returns the exit code
 */
export async function stopInTime(server: Pick<RunningServer, "close">, seconds: number): Promise<number> {
  const last = performance.now() + seconds * 1000 * EXIT_SHARE;
  const exit = (hanging: readonly string[], code: number): never => {
    const current = hanging.join(", ");
    tellParent({ closing: current || "the exit", exit: code });
    if (hanging.length > 0) {
      const rest = code === 0 ? "nothing that it had accepted is lost" : "writes that it had accepted are not decided";
      stderrLines().write(`cairnlog: the service was ended while this hung: ${current}; ${rest}\n`);
    }
    process.exit(code);
  };
  try {
    const { hanging, isSettled } = await server.close((closing) => tellParent({ closing }));
    if (hanging.length > 0) exit(hanging, isSettled ? 0 : 1);
    tellParent({ closing: "the exit", exit: 0 });
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
