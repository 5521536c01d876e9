/**
 * One level of a tree, 4096 pairs of nodes to their parents, by our kernels and by loops of `crypto.hash`.
 *
 * There are two loops, because they answer different questions. The first does all the work of the kernel: from a level
 * in binary, as a log stores it, to the level above in binary. The hex over which the tree is defined is made and
 * parsed on the way, in the fastest way that we found (all at once before and after the loop). The second loop gets hex
 * strings as operands and leaves its results as hex strings: the bare cost of the calls, which no real log could reach.
 *
 * Peers are in `peers.ts`. One of them hashes shorter messages than a node, so every row is also given per compression,
 * the basic operation of SHA-256.
 */
import { createHash, hash, randomBytes } from "node:crypto";
import { kernels } from "cairnlog/wasm";
import { compare, row } from "../compare.js";
import { asSha256, compressions, perMessagePeers } from "./peers.js";
const NODES = 4096;
export const suite = {
    summary: `a level of ${NODES} nodes: our kernels against loops of crypto.hash, as-sha256, hash-wasm and noble`,
    async run() {
        const level = randomBytes(64 * NODES);
        const results = {};
        for (const version of [2, 1]) {
            const whole = wholeJobLoop(level, version);
            const ready = readyOperandsLoop(level, version);
            const ours = kernels.map((kernel) => kernelContender(kernel, level, version));
            const batch = asSha256(level, NODES);
            const peers = [batch, ...(await perMessagePeers(level, version))];
            for (const { name, parents } of peers)
                if (parents)
                    requireSame(parents(), level, version, name);
            const measured = await compare([...ours, whole, ready, ...peers], NODES);
            const named = (name) => measured.find((contender) => contender.name === name);
            const baselines = { "× whole-job loop": named(whole.name), "× ready-made loop": named(ready.name) };
            const blocksOf = ({ name }) => peers.find((peer) => peer.name === name)?.compressions ?? compressions(version === 1 ? 128 : 129);
            const perCompression = (contender) => contender.median / blocksOf(contender);
            const best = perCompression(named(batch.name));
            console.log(`\nVersion ${version}: ns a node (${version === 1 ? 128 : 129} bytes), level of ${NODES} nodes`);
            console.table(measured.map((contender) => ({
                ...row(contender, baselines),
                "ns a compression": perCompression(contender).toFixed(0),
                "× as-sha256, per compression": (best / perCompression(contender)).toFixed(2),
            })));
            results[`version ${version}`] = measured.map((contender) => ({
                ...contender,
                compressions: blocksOf(contender),
            }));
        }
        return { nodes: NODES, nanosecondsPerNode: results };
    },
};
function prefix(version) {
    return version === 1 ? "" : "\x01";
}
function kernelContender(kernel, level, version) {
    requireSame(kernel.parents(level, version), level, version, kernel.name);
    return {
        name: `cairnlog kernel, ${kernel.name}: binary to binary`,
        run: () => {
            kernel.parents(level, version);
        },
    };
}
function wholeJobLoop(level, version) {
    const domain = prefix(version);
    const parents = () => {
        const operands = level.toString("hex");
        let hashes = "";
        for (let at = 0; at < operands.length; at += 128)
            hashes += hash("sha256", domain + operands.slice(at, at + 128), "hex");
        return Buffer.from(hashes, "hex");
    };
    requireSame(parents(), level, version, "the whole-job loop");
    return {
        name: "loop of crypto.hash, whole job: binary to hex, hash, hex to binary",
        run: () => {
            parents();
        },
    };
}
function readyOperandsLoop(level, version) {
    const operands = Array.from({ length: NODES }, (_, i) => prefix(version) + level.toString("hex", 64 * i, 64 * i + 64));
    // Flat, one-byte strings, as if read from a file: a concatenation would be flattened in the loop.
    const flat = operands.map((operand) => Buffer.from(operand, "latin1").toString("latin1"));
    const results = new Array(NODES);
    const loop = () => {
        for (let i = 0; i < NODES; i++)
            results[i] = hash("sha256", flat[i], "hex");
    };
    loop();
    requireSame(Buffer.from(results.join(""), "hex"), level, version, "the ready-made loop");
    return { name: "loop of crypto.hash, operands ready as hex, results left as hex", run: loop };
}
/** A benchmark with wrong results would be worthless. */
function requireSame(found, level, version, name) {
    const last = level.toString("hex", level.length - 64);
    const expected = createHash("sha256")
        .update(prefix(version) + last)
        .digest();
    if (found.length !== 32 * NODES || !expected.equals(found.subarray(-32)))
        throw new Error(`${name} is wrong`);
}
//# sourceMappingURL=hash.js.map