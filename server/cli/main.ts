#!/usr/bin/env node
/** The `cairnlog` command as a process. */
import { runCommand } from "./command.js";
import { leaveClosedTerminals } from "./terminal/closed.js";

leaveClosedTerminals();

process.exitCode = await runCommand(process.argv.slice(2));
