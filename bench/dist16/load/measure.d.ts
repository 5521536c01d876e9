/**
 * One load against a service: the clients' measurements, the service's metrics before and after, and whether the
 * sampled receipts verify.
 */
import { type Checked } from "./checker.js";
export interface LoadTask {
    readonly url: string;
    readonly connections: number;
    readonly clients: number;
    readonly requests: number;
    readonly rate?: number;
    readonly name: string;
    readonly signal: AbortSignal;
}
/** An interval of the run. Rates and latencies (milliseconds) are of recorded attestations, answered with 200. */
export interface Slice {
    /** Seconds from the start of the run to the middle of the interval. */
    readonly at: number;
    readonly perSecond: number;
    readonly p50: number;
    readonly p99: number;
}
export interface LoadReport {
    readonly connections: number;
    /** Requested rate in requests a second; absent if each connection waited for its answer. */
    readonly rate?: number;
    readonly seconds: number;
    readonly perSecond: number;
    readonly p50: number;
    readonly p99: number;
    readonly p999: number;
    readonly highest: number;
    /** Answers of any status. */
    readonly answered: number;
    /** Answers other than 200 by status; 0 for connections that broke or could not be made. */
    readonly errors: Readonly<Record<string, number>>;
    /** Requests that were never sent, because the load was stopped or connections broke. */
    readonly unsent: number;
    /** Microseconds of the service's CPU, all threads, for each answer, including the checks; null without metrics. */
    readonly cpuMicros: number | null;
    /** Appends that shared a commit, on average; null without metrics. */
    readonly perCommit: number | null;
    readonly checked: Checked;
    readonly timeline: readonly Slice[];
}
/** Runs the load and reports on it. @throws if the service cannot be reached, or `signal` aborts before the start */
export declare function measureLoad(task: LoadTask): Promise<LoadReport>;
