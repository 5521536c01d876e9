import type { Sample } from "./protocol.js";
export interface Checked {
    verified: number;
    skipped: number;
    /** A sentence for each receipt that does not verify. */
    readonly problems: string[];
}
export declare class Checker {
    #private;
    readonly result: Checked;
    private constructor();
    /** Takes the operator key from the service itself: this checks that the service is consistent. */
    static of(url: string): Promise<Checker>;
    add(sample: Sample): void;
    /** Resolves when everything added has been checked. */
    finish(): Promise<Checked>;
}
