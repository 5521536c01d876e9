/** The command line of the harnesses. */
import { type ParseArgsConfig, parseArgs } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T; strict: true }>>["values"];

/** Reads the options of `process.argv`; `--help` and wrong usage end the process. */
export function readCommand<const T extends Options>(help: string, options: T): Values<T> {
  return read(help, options, false).values;
}

/** Like `readCommand`, for a command that takes other arguments too. */
export function readArguments<const T extends Options>(
  help: string,
  options: T,
): { values: Values<T>; positionals: string[] } {
  return read(help, options, true);
}

function read<const T extends Options>(
  help: string,
  options: T,
  allowPositionals: boolean,
): { values: Values<T>; positionals: string[] } {
  try {
    const all = { ...options, help: { type: "boolean", short: "h" } } as const;
    const { values, positionals } = parseArgs({ options: all, strict: true, allowPositionals });
    if ((values as { help?: boolean }).help) {
      console.log(help);
      process.exit(0);
    }
    return { values: values as Values<T>, positionals };
  } catch (error) {
    refuse((error as Error).message);
  }
}

/** A whole number from 0 on; `fallback` if the option is absent. */
export function wholeNumber(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  if (!/^\d{1,15}$/.test(text)) refuse(`--${name} must be a whole number, not ${text}`);
  return Number(text);
}

export function refuse(message: string): never {
  console.error(`${message}\nTry --help.`);
  process.exit(2);
}

/** A random seed, short enough to be typed again. */
export const anySeed = (): number => Math.floor(Math.random() * 1_000_000);
