import { type Service } from "./service.js";
import { type Measured, type Row, type Stage } from "./stage.js";
/** Attestations of one round for each contender. */
export declare const ATTESTATIONS = 10000;
/** More than any machine of ours has cores. */
export declare const CONNECTIONS = 64;
/** For every attestation: microseconds of CPU, of all threads and of the main one; and the rate. */
export interface Cost {
    readonly all: number;
    readonly main: number;
    readonly perSecond: number;
}
/** A process that answers, and the number of entries in its log if it has one. */
export type Target = Pick<Service, "pid" | "port"> & Partial<Pick<Service, "size">>;
/**
 * Sends the prepared requests.
 * @throws if one of them is not answered with 200, or an attestation is not on the log afterwards
 */
export declare function load(stage: Stage, target: Target, requests: number, connections: number): Promise<Cost>;
/** Lets the bare server answer with as many bytes as this service. */
export declare function matchAnswers({ generator, bare }: Stage, { port }: Target): Promise<void>;
/** Costs of the bare server and of these targets, which all get the same requests. */
export declare function compareCosts<Name extends string>(stage: Stage, targets: Readonly<Record<Name, Target>>): Promise<Record<Name | "bare", Cost[]>>;
/** One number of each round. */
export declare const column: (costs: readonly Cost[], name: keyof Cost) => number[];
/** The rows of one contender. */
export declare function costRows(title: string, costs: readonly Cost[], bare: readonly Cost[]): Row[];
/** @param service one with the default number of front ends, already running */
export declare function measureAttestations(stage: Stage, service: Service): Promise<Measured>;
