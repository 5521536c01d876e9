/** How a command line is read, and what is said when it cannot be. */
import { type ParseArgsConfig, parseArgs } from "node:util";

/** A command line that is not understood: the sentence is shown with a pointer to `--help`, exit code 2. */
export class UsageError extends Error {}

/** One subcommand. `run` resolves to the exit code: 0 done, 1 failed, 2 not understood. */
export interface Subcommand {
  readonly summary: string;
  /** Synopsis, options and examples. */
  readonly help: string;
  run(argv: readonly string[]): Promise<number>;
}

/** `parseArgs` in strict mode. @throws UsageError */
export function readArguments<const T extends NonNullable<ParseArgsConfig["options"]>>(
  argv: readonly string[],
  options: T,
  allowPositionals = false,
): ReturnType<typeof parseArgs<{ options: T; strict: true; allowPositionals: true }>> {
  const config = { args: [...argv], options, allowPositionals, strict: true } as const;
  try {
    return parseArgs(config) as ReturnType<typeof readArguments<T>>;
  } catch (cause) {
    throw new UsageError((cause as Error).message.split(". ")[0], { cause });
  }
}

/** The value of an option that must be given. @throws UsageError */
export function required(value: string | undefined, option: string): string {
  if (value === undefined) throw new UsageError(`${option} is missing`);
  return value;
}
