#!/usr/bin/env node
/** The `cairnlog` command as a process. */
import { loadEnvFile } from "./operate/env-file.js";
import { leaveClosedTerminals } from "./terminal/closed.js";
import { watchOutput } from "./terminal/output.js";

leaveClosedTerminals();

const argv = process.argv.slice(2);
// What a service writes is its log, without which it goes on.
const isService = argv[0] === "serve" && !argv.some((word) => ["--help", "-h"].includes(word));
if (!isService) watchOutput();
const isWatched = isService && !argv.includes("--no-parent");
const refusal = loadEnvFile(argv);
if (refusal !== null) {
  console.error(`cairnlog: ${refusal}`);
  process.exit(2);
}
// Only one of the two is loaded. The parent of a service is to stay small.
process.exitCode = isWatched
  ? await (await import("./operate/parent.js")).runWithParent(argv)
  : await (await import("./command.js")).runCommand(argv);
