/**
 * Kills a process that does not end: `guard.js PID MILLISECONDS`. Its standard input is a pipe from that process. When the
 * pipe is closed, the process has ended, and so does this one. Each line on it says what the process is closing. File
 * descriptor 3 is the stderr of that process.
 */
import { LineOutput, withoutBlocking } from "../../http/observing/stderr.js";

const STDERR_OF_SERVICE = 3;
const [pid, milliseconds] = process.argv.slice(2).map(Number);

let read = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (text) => {
  read += text;
});
process.stdin.on("end", () => process.exit());
setTimeout(() => {
  process.kill(pid!, "SIGKILL");
  const part = read.trimEnd().split("\n").at(-1);
  new LineOutput(() => withoutBlocking(STDERR_OF_SERVICE)).write(
    `cairnlog: the service was killed while this hung: ${part}\n`,
  );
  process.exit();
}, milliseconds);
