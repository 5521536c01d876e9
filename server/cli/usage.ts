/** Reads command lines, and reports errors in them. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import { nearest } from "../nearest.js";

/** A command line that cannot be read. The sentence is shown with a pointer to `--help`, exit code 2. */
export class UsageError extends Error {}

/** Options by name, as `parseArgs` takes them. */
export type OptionTable = NonNullable<ParseArgsConfig["options"]>;

/** One subcommand. `run` resolves to the exit code: 0 success, 1 failure, 2 a command line that cannot be read. */
export interface Subcommand {
  /** Synopsis, options and examples. */
  readonly help: string;
  /** Every option that it takes. The parser, shell completion and the tests of its help use this table. */
  readonly options: OptionTable;
  /** The names of its actions, if it has several. One of them is the first argument. */
  readonly actions?: readonly string[];
  run(argv: readonly string[]): Promise<number>;
}

/** A subcommand in the list. The overview needs only its name and summary, so its code is loaded on use. */
export interface ListedCommand {
  readonly summary: string;
  readonly load: () => Promise<Subcommand>;
}

/** The values that `parseArgs` returns for the options in a table. */
export type Values<T extends OptionTable> = ReturnType<typeof readArguments<T>>["values"];

/** `parseArgs` in strict mode, which is its default. @throws UsageError */
export function readArguments<const T extends OptionTable>(
  argv: readonly string[],
  options: T,
  allowPositionals = false,
): ReturnType<typeof parseArgs<{ options: T; strict: true; allowPositionals: true }>> {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals }) as ReturnType<typeof readArguments<T>>;
  } catch (cause) {
    const [sentence] = (cause as Error).message.split(". ");
    const unknown = /^Unknown option '--([^']+)'/.exec(sentence!)?.[1];
    const meant = unknown === undefined ? undefined : nearest(unknown, [...Object.keys(options), "help"]);
    throw new UsageError(meant === undefined ? sentence : `${sentence}; is --${meant} meant?`, { cause });
  }
}

/** The value of an option that must be given. @throws UsageError */
export function required(value: string | undefined, option: string): string {
  if (value === undefined) throw new UsageError(`${option} is missing`);
  return value;
}

/** The one argument that must be given. @throws UsageError */
export function only(positionals: readonly string[], name: string): string {
  none(positionals.slice(1));
  return required(positionals[0], name);
}

/** @throws UsageError if arguments are left */
export function none(positionals: readonly string[]): void {
  if (positionals.length) throw new UsageError(`${positionals[0]} is one argument too many`);
}

/** The action that a command's first word names. @throws UsageError */
export function chosen<A>(actions: Readonly<Record<string, A>>, word: string | undefined): A {
  const action = word !== undefined && Object.hasOwn(actions, word) ? actions[word] : undefined;
  if (action !== undefined) return action;
  const known = Object.keys(actions);
  const meant = word === undefined ? undefined : nearest(word, known);
  throw new UsageError(`say what to do: ${known.join(", ")}${meant === undefined ? "" : `; is ${meant} meant?`}`);
}
