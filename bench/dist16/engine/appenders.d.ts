/** Length of an event's canonical payload, as in a typical attestation. */
export declare const PAYLOAD_BYTES = 600;
export interface Appender {
    readonly name: string;
    /** Number of calls that wait at any time. */
    readonly inFlight: number;
    /** Number of appends in one call. */
    readonly batch: number;
    /** Makes call number `n`; resolves when it is acknowledged. */
    call(n: number): Promise<unknown>;
}
/** Every appender over new logs under `folder`, and a function that closes them. */
export declare function openAppenders(folder: string, inFlight: readonly number[]): Promise<{
    ours: Appender[];
    peers: Appender[];
    floors: Appender[];
    /** Number of batches that the engine has written, which is the number of commits that its appends shared. */
    batches: () => number;
    close(): Promise<void>;
}>;
/** Keeps an appender busy for a while. */
export declare function drive({ inFlight, batch, call }: Appender, milliseconds: number): Promise<{
    appends: number;
    rate: number;
    cpu: number;
}>;
