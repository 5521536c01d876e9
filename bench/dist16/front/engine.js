/** The engine alone, in a process of its own: the CPU of an append beside that of one signature over its tree head. */
import { join } from "node:path";
import { generatePrivateKey, openLog, operatorKey } from "cairnlog";
import { cpuOf, signOne } from "../floors.js";
import { cpuMicros, ratios } from "../stats.js";
import { answerOrders, startChild } from "./child.js";
const IN_FLIGHT = 256;
/** Length of an event's canonical payload. */
const PAYLOAD_BYTES = 1_024;
const APPENDS = 10_000;
/** Signatures timed before the appends of a round, and as many after them, because a machine's speed drifts. */
const SIGNATURES = 2_000;
/** The compilers settle in the first rounds. */
const WARM_ROUNDS = 2;
/** `{"text":"…"}` of the given length, different for each `n`. */
const event = (n) => ({
    event_type: "note",
    payload: { text: `${n} `.padEnd(PAYLOAD_BYTES - '{"text":""}'.length, "all payloads are of one length; ") },
});
async function append({ path, rounds }) {
    const log = await openLog({ path, signer: operatorKey(generatePrivateKey("ed25519")) });
    const costs = { appends: [], signatures: [] };
    for (let round = 0; round < WARM_ROUNDS + rounds; round++) {
        const signedBefore = cpuOf(signOne, SIGNATURES);
        const before = process.cpuUsage();
        let next = 0;
        const client = async () => {
            while (next < APPENDS)
                await log.append(event(next++));
        };
        await Promise.all(Array.from({ length: IN_FLIGHT }, client));
        const cpu = cpuMicros(before) / APPENDS;
        const signed = (signedBefore + cpuOf(signOne, SIGNATURES)) / 2;
        if (round < WARM_ROUNDS)
            continue;
        costs.appends.push(cpu);
        costs.signatures.push(signed);
    }
    await log.close();
    return costs;
}
/** The parent's side. */
export async function measureEngine({ folder, rounds }) {
    const child = startChild(new URL(import.meta.url));
    try {
        const costs = await child.ask({ path: join(folder, "engine"), rounds });
        const { appends, signatures } = costs;
        const title = `engine, ${IN_FLIGHT} in flight, payloads of ${PAYLOAD_BYTES} bytes`;
        const rows = [
            { figure: `${title}: CPU of an append / one signature`, rounds: ratios(appends, signatures), digits: 2 },
            { figure: "engine: CPU of an append, µs", rounds: appends, digits: 1 },
        ];
        return { rows, details: costs };
    }
    finally {
        await child.close();
    }
}
if (process.argv[1] === import.meta.filename)
    answerOrders(append);
//# sourceMappingURL=engine.js.map