/** What a subcommand is: data for the parser and the help, and the function that does it. */

/** The options of a command, as a table: for the parser, for its help, for completion, and for the types of their values. */

/** An option with a value. */
interface TextOption {
  readonly type: "string";
  /** What stands for the value in the help, e.g. `FILE`. */
  readonly value: string;
  readonly help: string;
  readonly short?: string;
  readonly default?: string;
  /** Whether it may be given several times. */
  readonly multiple?: true;
}

/** An option without a value. */
interface Flag {
  readonly type: "boolean";
  readonly help: string;
  readonly short?: string;
}

/** Options by their long names. */
export type OptionTable = Readonly<Record<string, TextOption | Flag>>;

type ValueOf<O> = O extends { readonly type: "boolean" }
  ? boolean
  : O extends { readonly multiple: true }
    ? readonly string[]
    : O extends { readonly default: string }
      ? string
      : string | undefined;

/** The values of the options in a table. */
export type Values<T extends OptionTable> = { readonly [Name in keyof T]: ValueOf<T[Name]> };

/** An option with a value, which may be left out. */
export const text = (value: string, help: string) => ({ type: "string", value, help }) as const;

/** An option with a value that has a default. */
export const textOr = (value: string, fallback: string, help: string) =>
  ({ type: "string", value, help, default: fallback }) as const;

/** An option with a value that may be given several times. */
export const texts = (value: string, help: string) => ({ type: "string", value, help, multiple: true }) as const;

export const flag = (help: string) => ({ type: "boolean", help }) as const;

/** One of the things that a subcommand does, named by the word after the subcommand's name. */
interface Action {
  /** What follows its name on the command line, without `[options]`. */
  readonly form: string;
  readonly about: string;
  /** The options of the subcommand that only some actions take, and this one does. */
  readonly takes?: readonly string[];
}

interface Described {
  /** Paragraphs, separated by empty lines. Their lines are joined; lines that begin with a space stay as they are. */
  readonly about: string;
  /** Every option that the subcommand or one of its actions takes. */
  readonly options: OptionTable;
  /** Paragraphs after the options: exit codes, settings. */
  readonly notes?: string;
  /** Command lines, a line each. */
  readonly examples: string;
}

/** A subcommand, after its types were checked. `run` resolves to the exit code: 0 success, 1 failure. */
export interface Subcommand extends Described {
  /** What may follow its name on the command line, without `[options]`; for one with actions, see these. */
  readonly forms: readonly string[];
  readonly actions?: Readonly<Record<string, Action>>;
  run(operands: readonly string[], values: Values<OptionTable>, action: string): number | Promise<number>;
}

/** A subcommand that does one thing. */
export function subcommand<const T extends OptionTable>(
  given: Described & {
    readonly options: T;
    readonly forms: readonly string[];
    run(operands: readonly string[], values: Values<T>): number | Promise<number>;
  },
): Subcommand {
  return given as Subcommand;
}

/** A subcommand with actions. An option that no action takes for itself belongs to all of them. */
export function subcommandWithActions<const T extends OptionTable, A extends string>(
  given: Described & {
    readonly options: T;
    readonly actions: Readonly<Record<A, Action & { readonly takes?: readonly (keyof T & string)[] }>>;
    run(operands: readonly string[], values: Values<T>, action: A): number | Promise<number>;
  },
): Subcommand {
  return { ...given, forms: [] } as Subcommand;
}

/** The options that an action takes. */
export function optionsOf({ options, actions }: Subcommand, action: string | undefined): OptionTable {
  if (!actions || action === undefined) return options;
  const claimed = new Set(Object.values(actions).flatMap(({ takes = [] }) => takes));
  const own = new Set(actions[action]!.takes);
  return Object.fromEntries(Object.entries(options).filter(([name]) => own.has(name) || !claimed.has(name)));
}
