/** The `cairnlog` command: finds and runs the subcommand, and turns errors into a sentence and an exit code. */
import { COMMANDS } from "./commands.js";
import { runLine } from "./line/program.js";
import type { Subcommand } from "./line/subcommand.js";
import { UsageError } from "./line/usage.js";

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
    // `help COMMAND` is `COMMAND --help`, so that it takes actions, too.
    const words = argv[0] === "help" ? [...argv.slice(1), "--help"] : argv;
    const [name = ""] = words;
    const listed = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (listed) return await runLine(words, COMMANDS, { name, command: await loaded(listed.load) });
    // With `--help` behind it, a mistyped command would be answered with the overview.
    return await runLine(name.startsWith("-") ? words : words.slice(0, 1), COMMANDS, null);
  } catch (error) {
    if (error instanceof UsageError) {
      const { printable } = await import("./terminal/printable.js");
      // What was typed may be the names of files, which others chose.
      console.error(printable(`cairnlog: ${error.message}\nTry: ${error.command ?? "cairnlog"} --help`));
      return 2;
    }
    // Loaded when it is needed: a command that succeeds starts faster without it.
    const { explain } = await import("./connection/explain.js");
    console.error(`cairnlog: ${explain(error)}`);
    return 1;
  }
}

/** The subcommand's code. If it does not load because the process may open too few files, the error says so. */
async function loaded(load: () => Promise<Subcommand>): Promise<Subcommand> {
  const { openFileLimit, tooFewFiles } = await import("../process/machine.js");
  // Read before: when no file can be opened any more, this one cannot, either.
  const limit = openFileLimit();
  return load().catch((cause: unknown) => {
    throw limit !== null && limit < FILES_TO_LOAD ? tooFewFiles(limit, cause) : cause;
  });
}
