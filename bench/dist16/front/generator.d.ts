/** Prepares requests, which stay until others are prepared. */
interface Sign {
    readonly kind: "sign";
    readonly attestations: number;
    /** Attestations in one request; absent for requests of a single one. */
    readonly perRequest?: number;
    readonly name: string;
}
export interface Sent {
    /** Seconds from the first request to the last answer. */
    readonly seconds: number;
    /** Answers by status; 0 for connections that broke. */
    readonly statuses: Readonly<Record<number, number>>;
    /** Mean length of the answers' bodies. */
    readonly bytes: number;
}
/** The parent's side. */
export declare class Generator {
    #private;
    /** Resolves with the number of requests. */
    sign(order: Omit<Sign, "kind">): Promise<number>;
    post(port: number, connections: number): Promise<Sent>;
    alternate(...ports: number[]): Promise<number[][]>;
    get(port: number, connections: number, prefix: string, numbers: readonly number[]): Promise<Sent>;
    close(): Promise<void>;
}
export {};
