/**
 * Other SHA-256 implementations over the same level of nodes as our kernels. No peer has a function for our nodes (64
 * bytes in binary, expanded to hex, three compressions). So as-sha256 uses its own fastest function, and is compared
 * per compression.
 */
import { hashInto, reinitializeInstance, simdEnabled } from "@chainsafe/as-sha256";
import { sha256 as nobleSha256 } from "@noble/hashes/sha2.js";
import { createSHA256 } from "hash-wasm";
/** Number of SHA-256 blocks of a message of this length. */
export const compressions = (bytes) => Math.ceil((bytes + 9) / 64);
/**
 * as-sha256's fastest function: pairs of 32 bytes in one buffer, hashed in batches of four, into an existing buffer.
 */
export function asSha256(level, nodes) {
    if (!simdEnabled)
        reinitializeInstance(true);
    const output = new Uint8Array(32 * nodes);
    return {
        name: `as-sha256 hashInto${simdEnabled ? ", SIMD" : ""}: 64-byte messages, no hex`,
        compressions: compressions(64),
        parents: null,
        run: () => hashInto(level, output),
    };
}
/**
 * Peers that hash one message per call do all the work of the tree; the code around the hashing is the same for all of
 * them.
 */
export async function perMessagePeers(level, version) {
    const wasm = await createSHA256();
    const operand = Buffer.alloc(version === 1 ? 128 : 129, 1);
    const peer = (name, hashOf) => {
        const parents = () => {
            const hex = Buffer.from(level.toString("hex"), "latin1");
            const output = new Uint8Array(level.length / 2);
            for (let i = 0; i < level.length / 64; i++) {
                hex.copy(operand, operand.length - 128, 128 * i, 128 * i + 128);
                output.set(hashOf(operand), 32 * i);
            }
            return output;
        };
        return {
            name,
            compressions: compressions(operand.length),
            parents,
            run: () => {
                parents();
            },
        };
    };
    return [
        peer("hash-wasm, one hasher: binary to hex, hash, binary", (message) => wasm.init().update(message).digest("binary")),
        peer("@noble/hashes: binary to hex, hash, binary", nobleSha256),
    ];
}
//# sourceMappingURL=peers.js.map