export interface OwnService {
    readonly url: string;
    close(): Promise<void>;
}
/** Forks this file; resolves when the service listens. */
export declare function startOwnService(): Promise<OwnService>;
