/** This checkout. */
export declare const CHECKOUT: string;
export interface Service {
    readonly pid: number;
    readonly port: number;
    /** Number of entries that its log shows. */
    size(): Promise<number>;
    close(): Promise<void>;
}
export interface ServiceOptions {
    /** Root of a checkout that is built. */
    readonly checkout: string;
    readonly dataDir: string;
    /** Front ends; the service's own default if absent. */
    readonly frontEnds?: number;
}
/** Whether this version has front ends. */
export declare const knowsFrontEnds: (checkout: string) => boolean;
/** Starts a service; resolves when it listens. @throws if it ends before */
export declare function startService({ checkout, dataDir, frontEnds }: ServiceOptions): Promise<Service>;
