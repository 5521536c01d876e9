import { Bare } from "./bare.js";
import { Generator } from "./generator.js";
export interface Stage {
    /** For the data directories of all services, on one disk with the pages of the bare server. */
    readonly folder: string;
    readonly generator: Generator;
    readonly bare: Bare;
    readonly rounds: number;
    close(): Promise<void>;
}
/** A figure of the suite: a value for each round. */
export interface Row {
    readonly figure: string;
    readonly rounds: readonly number[];
    readonly digits: number;
}
/** The figures of one part of the suite, and everything that was measured for them. */
export interface Measured {
    readonly rows: readonly Row[];
    readonly details: unknown;
}
/** Starts the generator and the bare server. */
export declare function openStage(rounds: number): Promise<Stage>;
/**
 * Measures every contender once in each round. Another one begins each time, so that none always follows the same one.
 * @param prepare called before each round
 */
export declare function takeTurns<Name extends string, T>(rounds: number, contenders: Readonly<Record<Name, () => Promise<T>>>, prepare?: (round: number) => Promise<unknown>): Promise<Record<Name, T[]>>;
