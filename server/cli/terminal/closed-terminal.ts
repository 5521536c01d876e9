/** What a process does about a terminal that was closed while it ran. */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { isatty } from "node:tty";

const STANDARD = [0, 1, 2] as const;

/**
 * Replaces standard streams whose terminal was closed, when the process exits. At its exit Node restores the settings of each
 * terminal that it was started on, and aborts when it cannot. It leaves out what is another file by then.
 */
export function leaveClosedTerminals(): void {
  const terminals = STANDARD.filter((fd) => isatty(fd));
  if (terminals.length === 0) return;
  process.on("exit", () => {
    // `open` takes the lowest number that is free, which is the one that was just closed.
    for (const fd of terminals)
      if (!isatty(fd)) {
        closeSync(fd);
        openSync(devNull, "r+");
      }
  });
}
