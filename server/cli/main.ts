#!/usr/bin/env node
/** The `cairnlog` command as a process. */
import { leaveClosedTerminals } from "./terminal/closed.js";

leaveClosedTerminals();

const argv = process.argv.slice(2);
const isWatched = argv[0] === "serve" && !argv.some((word) => ["--no-parent", "--help", "-h"].includes(word));
// Only one of the two is loaded. The parent of a service is to stay small.
process.exitCode = isWatched
  ? await (await import("./operate/parent.js")).runWithParent(argv)
  : await (await import("./command.js")).runCommand(argv);
