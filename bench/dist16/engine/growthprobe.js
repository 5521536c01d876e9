/**
 * One measurement of a log by a separate process: the time of opening, resident memory after that, and the cost of
 * reads. Forked by `growth.ts`, which also uses the events from here.
 */
import { readFileSync } from "node:fs";
import { openLog, operatorKey } from "cairnlog";
import { p50Micros } from "../stats.js";
/** Every fourth entry names this key, so that page 1000 exists in 200,000 entries. */
const FINGERPRINT = `sha256:${"ab".repeat(32)}`;
const PER_PAGE = 50;
const LAST_PAGE = 1_000;
const SAMPLES = 300;
export const event = (n) => ({
    event_type: "note",
    payload: {
        n,
        tags: [`tag ${n % 100}`],
        signer_key_fingerprint: n % 4 ? `sha256:${n.toString(16).padStart(64, "0")}` : FINGERPRINT,
        text: "all entries are of about one length; ".repeat(8),
    },
});
function anonymousMiB() {
    if (process.platform !== "linux")
        return undefined;
    const kib = /^RssAnon:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
    return kib === undefined ? undefined : Number(kib) / 1024;
}
async function probe({ path, pem }) {
    const signer = operatorKey(pem);
    const started = performance.now();
    const log = await openLog({ path, signer });
    const openMs = performance.now() - started;
    globalThis.gc?.();
    const residentMiB = process.memoryUsage.rss() / 2 ** 20;
    const resident = { residentMiB, anonymousMiB: anonymousMiB() ?? residentMiB };
    const size = log.size;
    const prove = (n) => log.inclusionProof((Math.imul(n + 1, 2_654_435_761) >>> 0) % size);
    p50Micros(SAMPLES, prove);
    const proofMicros = p50Micros(SAMPLES, prove);
    const { total } = log.find({ fingerprint: FINGERPRINT }, 0, 1);
    const lastPage = Math.min(LAST_PAGE, Math.floor(total / PER_PAGE));
    const read = (page) => () => {
        const { entries } = log.find({ fingerprint: FINGERPRINT }, (page - 1) * PER_PAGE, PER_PAGE);
        if (entries.length !== PER_PAGE)
            throw new Error(`page ${page} is short`);
    };
    p50Micros(SAMPLES, read(1));
    const firstPageMicros = p50Micros(SAMPLES, read(1));
    const lastPageMicros = p50Micros(SAMPLES, read(lastPage));
    await log.close();
    return { entries: size, openMs, ...resident, proofMicros, firstPageMicros, lastPageMicros, lastPage };
}
// When the suite imports this file for its events, there is no parent to answer.
if (process.send)
    process.once("message", async (task) => {
        const result = await probe(task);
        // A channel that is closed too soon drops messages that are not sent yet.
        process.send(result, undefined, {}, () => process.disconnect());
    });
//# sourceMappingURL=growthprobe.js.map