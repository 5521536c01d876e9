import type { TreeVersion } from "cairnlog/wasm";
import type { Contender } from "../compare.js";
/** Number of SHA-256 blocks of a message of this length. */
export declare const compressions: (bytes: number) => number;
export interface HashPeer extends Contender {
    /** Compressions for one node. */
    readonly compressions: number;
    /** Returns the hashes of the level, 32 bytes a node; null if they are not those of the tree. */
    readonly parents: (() => Uint8Array) | null;
}
/**
 * as-sha256's fastest function: pairs of 32 bytes in one buffer, hashed in batches of four, into an existing buffer.
 */
export declare function asSha256(level: Buffer, nodes: number): HashPeer;
/**
 * Peers that hash one message per call do all the work of the tree; the code around the hashing is the same for all of
 * them.
 */
export declare function perMessagePeers(level: Buffer, version: TreeVersion): Promise<HashPeer[]>;
