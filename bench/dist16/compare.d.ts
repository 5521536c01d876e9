export interface Contender {
    readonly name: string;
    run(): void;
}
export interface Measured {
    readonly name: string;
    /** Nanoseconds per unit of work: the median of the rounds, and all rounds. */
    readonly median: number;
    readonly rounds: readonly number[];
}
/** Measures every contender; one `run` does `units` units of work. */
export declare function compare(contenders: readonly Contender[], units: number): Promise<Measured[]>;
/**
 * A row for `console.table`: the median, the fastest and slowest round, and the ratio to each baseline. Both the
 * medians and the fastest rounds are compared, because garbage collection happens only in some rounds.
 */
export declare function row(measured: Measured, baselines: Readonly<Record<string, Measured>>): Record<string, string>;
