/**
 * The contenders of `append`: our engine, hypercore as a peer, and a bare LMDB put as the floor. Each appends the same
 * payload to a log of its own in a directory of its own.
 */
import { join } from "node:path";
import { generatePrivateKey, openLog, operatorKey } from "cairnlog";
import Hypercore from "hypercore";
import { openRawStore } from "../floors.js";
import { cpuMicros } from "../stats.js";
/** Length of an event's canonical payload, as in a typical attestation. */
export const PAYLOAD_BYTES = 600;
/** `{"text":"…"}` of the given length, different for each `n`. */
function payload(n) {
    return { text: `${n} `.padEnd(PAYLOAD_BYTES - '{"text":""}'.length, "all payloads are of one length; ") };
}
const payloadBytes = (n) => Buffer.from(JSON.stringify(payload(n)));
/** Every appender over new logs under `folder`, and a function that closes them. */
export async function openAppenders(folder, inFlight) {
    const log = await openLog({ path: join(folder, "cairnlog"), signer: operatorKey(generatePrivateKey("ed25519")) });
    const core = new Hypercore(join(folder, "hypercore"));
    await core.ready();
    const raw = openRawStore(join(folder, "lmdb"));
    let puts = 0;
    const ours = inFlight.map((count) => ({
        name: `cairnlog, ${count} in flight`,
        inFlight: count,
        batch: 1,
        call: (n) => log.append({ event_type: "note", payload: payload(n) }),
    }));
    const peers = [
        ...[1, 64].map((count) => ({
            name: `hypercore, ${count} in flight`,
            inFlight: count,
            batch: 1,
            call: (n) => core.append(payloadBytes(n)),
        })),
        {
            name: "hypercore, 64 in one append",
            inFlight: 1,
            batch: 64,
            call: (n) => core.append(Array.from({ length: 64 }, (_, i) => payloadBytes(64 * n + i))),
        },
    ];
    const floors = inFlight.map((count) => ({
        name: `LMDB put + flushed, ${count} in flight`,
        inFlight: count,
        batch: 1,
        call: async (n) => {
            await raw.put(++puts, payloadBytes(n));
            await raw.flushed;
        },
    }));
    return {
        ours,
        peers,
        floors,
        /** Number of batches that the engine has written, which is the number of commits that its appends shared. */
        batches: () => log.batches,
        async close() {
            await log.close();
            await core.close();
            await raw.close();
        },
    };
}
/** Keeps an appender busy for a while. */
export async function drive({ inFlight, batch, call }, milliseconds) {
    const before = process.cpuUsage();
    const started = performance.now();
    let calls = 0;
    const client = async () => {
        while (performance.now() - started < milliseconds)
            await call(calls++);
    };
    await Promise.all(Array.from({ length: inFlight }, client));
    const seconds = (performance.now() - started) / 1000;
    const appends = calls * batch;
    return { appends, rate: appends / seconds, cpu: cpuMicros(before) / appends };
}
//# sourceMappingURL=appenders.js.map