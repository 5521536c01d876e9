export declare const event: (n: number) => {
    event_type: string;
    payload: {
        n: number;
        tags: string[];
        signer_key_fingerprint: string;
        text: string;
    };
};
export interface ProbeTask {
    readonly path: string;
    readonly pem: string;
}
export interface Probe {
    readonly entries: number;
    readonly openMs: number;
    readonly residentMiB: number;
    /**
     * Resident memory without pages of mapped files, which the system drops when it needs memory; as above if unknown.
     */
    readonly anonymousMiB: number;
    readonly proofMicros: number;
    readonly firstPageMicros: number;
    readonly lastPageMicros: number;
    /** Page 1000, or the last page of a smaller log. */
    readonly lastPage: number;
}
