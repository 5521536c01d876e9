#!/usr/bin/env node
/** The `cairnlog` command as a process. */
import { loadEnvFile } from "./operate/env-file.js";
import { leaveClosedTerminals, outliveHangUps, watchOutput } from "./terminal/output.js";

leaveClosedTerminals();

const argv = process.argv.slice(2);
// What a service writes is its log, without which it goes on.
const isService = argv[0] === "serve" && !argv.some((word) => ["--help", "-h"].includes(word));
if (!isService) watchOutput();
if (["serve", "witness"].includes(argv[0] ?? "")) outliveHangUps();
const isWatched = isService && !argv.includes("--no-parent");
const refusal = loadEnvFile(argv);
if (refusal !== null) {
  console.error(`cairnlog: ${refusal}`);
  process.exit(2);
}
// They read a log beside the service that writes it, which goes first. Threads that are started from here on inherit it.
if (["backup", "fsck"].includes(argv[0] ?? "")) (await import("../../engine/base/turns.js")).yieldToOthers();
// Only one of the two is loaded. The parent of a service is to stay small.
process.exitCode = isWatched
  ? await (await import("./operate/parent.js")).runWithParent(argv)
  : await (await import("./command.js")).runCommand(argv);
