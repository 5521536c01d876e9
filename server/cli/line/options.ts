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
