#!/usr/bin/env node
/** The `cairnlog` command as a process. */
import { runCommand } from "./command.js";

process.exitCode = await runCommand(process.argv.slice(2));
