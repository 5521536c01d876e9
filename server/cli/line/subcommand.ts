/** What a subcommand is: data for the parser and the help, and the function that does it. */
import type { OptionTable, Values } from "./options.js";

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
