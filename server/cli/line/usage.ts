/** Errors in command lines, and the checks of what is neither option nor command. */

/** A command line that cannot be read. The sentence is shown with a pointer to `--help`, exit code 2. */
export class UsageError extends Error {
  /** The command and its action, whose help says more. */
  command: string | undefined;

  constructor(message: string, { command, ...options }: ErrorOptions & { readonly command?: string } = {}) {
    super(message, options);
    this.command = command;
  }
}

/** The value of an option that must be given. @throws UsageError */
export function required(value: string | undefined, option: string): string {
  if (value === undefined) throw new UsageError(`${option} is missing`);
  return value;
}

/** A time for the service, which reads ISO 8601. @throws UsageError for another one */
export function timeOption(text: string | undefined, option: string): string | undefined {
  if (text === undefined || (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(Date.parse(text)))) return text;
  throw new UsageError(`${option} must be a time such as 2030-01-31T12:00:00Z, not ${text}`);
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
