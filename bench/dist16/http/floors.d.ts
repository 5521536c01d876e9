/**
 * Servers that only answer, for `http` to compare with: node:http, fastify and bare uWebSockets.js, each with one
 * constant JSON body of a given length.
 */
export interface Echo {
    readonly name: string;
    readonly port: number;
    close(): Promise<void>;
}
/** Bare uWS that reads the body of a POST and answers it: the cost of HTTP alone for an attestation. */
export declare function openReceiver(bytes: number): Promise<Echo>;
/** All three, listening; bare uWS first. */
export declare const openEchoes: (bytes: number) => Promise<Echo[]>;
