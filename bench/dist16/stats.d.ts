/**
 * The statistics that suites share. A figure is the median of its rounds, with the lowest and highest beside it. A
 * ratio is first computed within each round, so that other load in a round affects both sides.
 */
/** The value that this share of `values`, in any order, does not exceed. */
export declare function quantile(values: readonly number[], share: number): number;
export declare const median: (values: readonly number[]) => number;
/** `12.3 (11.9 – 14.0)`: the median of the rounds, the lowest and the highest. */
export declare function spread(values: readonly number[], digits?: number): string;
/** The ratio of each value to `base`, round by round. */
export declare const ratios: (values: readonly number[], base: readonly number[]) => number[];
/** Microseconds of CPU, user and system, of all threads of this process since `before`. */
export declare function cpuMicros(before: NodeJS.CpuUsage): number;
/** Median microseconds of `count` calls, each timed on its own. */
export declare function p50Micros(count: number, work: (n: number) => void): number;
