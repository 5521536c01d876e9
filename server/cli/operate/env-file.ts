/**
 * `--env-file FILE`: settings in a file, in the format of `node --env-file`. The process reads it before it loads anything else,
 * because some variables count when modules are loaded (`SERVICE_NATIVE_CODE`). The parent of a service hands them on.
 */
import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { withoutMark } from "../files/byte-order-mark.js";
import { text } from "../line/subcommand.js";

export const ENV_FILE_OPTION = {
  "env-file": text("FILE", "environment variables in the format of node --env-file; those that are set already hold"),
} as const;

const NAME = "--env-file";
/** The commands that have the option. */
const COMMANDS: ReadonlySet<string | undefined> = new Set(["serve", "settings"]);

const given = new Set<string>();

/** Whether a variable of this process has come from the file. */
export const isFromFile = (variable: string): boolean => given.has(variable);

/**
 * Reads the file that a command line names, if it does, into the environment of this process. As for the settings, an empty
 * variable counts as one that is not set.
 * @returns why it cannot be read; null if there is nothing to say
 */
export function loadEnvFile(argv: readonly string[]): string | null {
  const file = COMMANDS.has(argv[0]) ? fileIn(argv) : undefined;
  if (file === undefined) return null;
  let content: string;
  try {
    content = withoutMark(readFileSync(file, "utf8"));
  } catch (error) {
    return `${NAME} ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`;
  }
  for (const [name, value] of Object.entries(parseEnv(content))) {
    process.env[name] ||= value;
    // Some versions of Node have read the file themselves by now, as they look for the option behind the script, too.
    if (process.env[name] === value) given.add(name);
  }
  return null;
}

/** The last one counts, as for every option. */
function fileIn(argv: readonly string[]): string | undefined {
  const at = argv.lastIndexOf(NAME);
  const joined = argv.findLastIndex((word) => word.startsWith(`${NAME}=`));
  return joined > at ? argv[joined]!.slice(NAME.length + 1) : at >= 0 ? argv[at + 1] : undefined;
}
