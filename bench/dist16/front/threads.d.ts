export interface ThreadTimes {
    /** All threads together. */
    readonly all: number;
    /** The main thread, on which a service writes its log. */
    readonly main: number;
}
/**
 * What `work` costs the process. A thread that ends meanwhile is not counted: a service ends only threads that had
 * nothing to do.
 */
export declare function cpuOfProcess<T>(pid: number, work: () => Promise<T>): Promise<{
    cpu: ThreadTimes;
    result: T;
}>;
