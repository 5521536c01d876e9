import type { Sample } from "./protocol.js";
export interface LoadOptions {
    readonly host?: string;
    readonly port: number;
    readonly requests: number;
    readonly connections: number;
    /** Client processes that share requests and connections. */
    readonly clients: number;
    readonly name: string;
    readonly rate?: number;
    /** Called with every hundredth receipt, while the load runs. */
    readonly onSample?: (sample: Sample) => void;
    /** Ends the load early: nothing more is sent, and running requests are awaited. */
    readonly signal?: AbortSignal;
}
export interface LoadResult {
    /** Seconds from the first request to the last answer. */
    readonly seconds: number;
    /** Answers of any status. */
    readonly answered: number;
    /** Milliseconds, ascending, of the requests answered with 200. */
    readonly latencies: readonly number[];
    /** Milliseconds from the start at which each of them was answered, ascending, with its latency. */
    readonly answers: readonly {
        readonly at: number;
        readonly latency: number;
    }[];
    /** Answers by status; 0 for connections that broke or could not be made. */
    readonly statuses: Readonly<Record<number, number>>;
}
export interface PreparedLoad {
    run(): Promise<LoadResult>;
}
/** Starts the clients and lets them sign all requests. @throws if `signal` aborts before that is done */
export declare function prepareLoad(options: LoadOptions): Promise<PreparedLoad>;
/** The latency that this share of all answers did not exceed. */
export declare function percentile(ascending: readonly number[], share: number): number;
