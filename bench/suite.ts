/**
 * The interface of a benchmark suite. Each is in a file of its own and listed in `main.ts`. It prints its results for
 * people and returns the same results as plain data for `--json`.
 */
export interface SuiteOptions {
  /** Entries of the large log, for suites that grow one. */
  readonly entries?: number;
  /** Rounds of each contender that count, for suites that let you choose. */
  readonly rounds?: number;
  /** Root of another built checkout to compare with, for suites that can. */
  readonly against?: string;
  /** Only what has this in its name, for suites that can. */
  readonly only?: string;
  /** Whether to show quickly that the suite works, for suites that can. */
  readonly short?: boolean;
  /** Whether to say which functions took the longest turns. */
  readonly profile?: boolean;
}

export interface Suite {
  /** One line for `--help`. */
  readonly summary: string;
  run(options: SuiteOptions): Promise<unknown>;
}
