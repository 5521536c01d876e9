/** A service whose parent watches it, as a process: `child.js serve …`. Only `parent.ts` starts it. */
import { useAsStderr } from "../process/stderr.js";
import { holdParentConnection, PARENT_STDERR } from "./operate/parent-connection.js";
import { leaveClosedTerminals, outliveHangUps } from "./terminal/output.js";

holdParentConnection();
leaveClosedTerminals();
outliveHangUps();
// The standard one leads to the parent. It takes what native code says before it ends the process.
useAsStderr(PARENT_STDERR);

const { runCommand } = await import("./command.js");
process.exitCode = await runCommand(process.argv.slice(2));
