export interface ReadTask {
    readonly port: number;
    readonly path: string;
    readonly connections: number;
    readonly milliseconds: number;
}
export interface ReadResult {
    readonly requests: number;
    readonly seconds: number;
    /** Microseconds from each request to its answer. */
    readonly p50: number;
    readonly p99: number;
}
/** Bytes of one whole answer, and the length of its body; after this nothing needs to be parsed. */
export declare function answerSize(task: Pick<ReadTask, "port" | "path">): Promise<{
    whole: number;
    body: number;
}>;
