/** The `cairnlog` command: finds and runs the subcommand, and turns errors into a sentence and an exit code. */
import { CairnlogError } from "../../engine/error.js";
import { ClientError } from "../client/error.js";
import { openFileLimit, tooFewFiles } from "../machine.js";
import { nearest } from "../nearest.js";
import { VERSION } from "../version.js";
import { COMMANDS } from "./commands.js";
import { ServiceError } from "./service.js";
import { printable } from "./terminal/printable.js";
import { isSystemError, systemSentence } from "./terminal/system-error.js";
import { none, type Subcommand, UsageError } from "./usage.js";

/**
 * With this many files, every command loads: `serve` does with 200, not with 160. Node opens many modules at a time, and if
 * it may open no more, it says that a package is not there.
 */
const FILES_TO_LOAD = 256;

/**
 * Runs the command with these arguments. Errors become a sentence on stderr.
 * @returns the exit code: that of the subcommand, 1 for an error, 2 for a command line that cannot be read
 */
export async function runCommand(argv: readonly string[]): Promise<number> {
  try {
    return await dispatch(argv);
  } catch (error) {
    console.error(`cairnlog: ${explain(error, argv[0])}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function dispatch([name, ...argv]: readonly string[]): Promise<number> {
  if (name === "--version" || name === "-V") return say(VERSION);
  if (name === undefined || name === "--help" || name === "-h") return say(overview(), name === undefined ? 2 : 0);
  if (name === "help") return help(argv);
  const command = await loaded(name);
  if (argv.includes("--help") || argv.includes("-h")) return say(command.help);
  return command.run(argv);
}

/** `cairnlog help [COMMAND]` */
async function help([name, ...more]: readonly string[]): Promise<number> {
  none(more);
  return say(name === undefined ? overview() : (await loaded(name)).help);
}

async function loaded(name: string): Promise<Subcommand> {
  const listed = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (listed) {
    // Read before: when no file can be opened any more, this one cannot, either.
    const limit = openFileLimit();
    return listed.load().catch((cause: unknown) => {
      throw limit !== null && limit < FILES_TO_LOAD ? tooFewFiles(limit, cause) : cause;
    });
  }
  const meant = nearest(name, Object.keys(COMMANDS));
  throw new UsageError(`there is no command ${name}${meant === undefined ? "" : `; is ${meant} meant?`}`);
}

function say(text: string, exitCode = 0): number {
  console.log(text);
  return exitCode;
}

function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `cairnlog COMMAND [OPTIONS]

Commands:
${lines.join("\n")}

cairnlog COMMAND --help, or cairnlog help COMMAND, says more of each; cairnlog --version says which version this is.
CAIRNLOG_SERVER is the address of the service for commands without --server.`;
}

/**
 * The text that is printed for an error: a sentence if its cause is outside the program, otherwise the stack as well.
 */
function explain(error: unknown, name: string | undefined): string {
  if (error instanceof UsageError) {
    const known = name !== undefined && Object.hasOwn(COMMANDS, name);
    return `${error.message}\nTry: cairnlog ${known ? `${name} ` : ""}--help`;
  }
  if (error instanceof ClientError) return refusal(error);
  const isExpected = error instanceof CairnlogError || error instanceof ServiceError;
  if (isExpected) return printable(error.message);
  if (isSystemError(error)) return printable(systemSentence(error));
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Escaped, because the service wrote most of the text. */
function refusal({ message, errors }: ClientError): string {
  const members = errors.map(({ path, message: fault }) => `  ${path}: ${fault}`);
  return printable([message, ...members].join("\n"));
}
