/**
 * The least that any service of this kind does for a request, in a process of its own: uWebSockets reads the body, JSON
 * is parsed, libsodium verifies the client's signature and signs one tree head, and as many bytes as the service
 * answers go back. There is no log: nothing is checked, ordered or stored.
 */
/** The parent's side. */
export declare class Bare {
    #private;
    /** Verifies, signs and answers; a GET is only answered. */
    readonly port: number;
    /** Also writes a page of 4 KiB to the disk of `folder` before it answers a POST. */
    readonly durablePort: number;
    private constructor();
    static start(folder: string): Promise<Bare>;
    get pid(): number;
    answerWith(bytes: number): Promise<void>;
    /** Microseconds of CPU for verifying one client's signature and signing one tree head. */
    signatures(count: number): Promise<number>;
    close(): Promise<void>;
}
