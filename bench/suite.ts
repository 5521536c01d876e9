/**
 * What a benchmark suite is. Each lives in a file of its own and is named in `main.ts`; it prints what it measured for
 * people and returns the same as plain data for `--json`.
 */
export interface SuiteOptions {
  /** Entries of the large log, for suites that grow one. */
  readonly entries?: number;
}

export interface Suite {
  /** One line for `--help`. */
  readonly summary: string;
  run(options: SuiteOptions): Promise<unknown>;
}
