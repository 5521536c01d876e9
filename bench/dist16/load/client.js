/**
 * A client process of the load generator: signs attestations beforehand, then sends them over keep-alive connections, one
 * request at a time on each.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { openConnection, postRequest } from "./connection.js";
import { signedSubmissions } from "./submissions.js";
const SAMPLE_EVERY = 100;
const stopped = new AbortController();
// Every connection that waits until its request is due listens.
setMaxListeners(0, stopped.signal);
/** Whole requests, including headers. */
function prepare({ requests, name, host, port }) {
    return signedSubmissions(requests, name).map((submission) => postRequest({ host, port }, "/api/v1/attestations", JSON.stringify(submission)));
}
async function run(requests, prepared, { rate }) {
    const latencies = [];
    const finished = [];
    const statuses = {};
    const count = (status) => {
        statuses[status] = (statuses[status] ?? 0) + 1;
    };
    const started = performance.now();
    let next = 0;
    const work = async () => {
        const connection = await openConnection(prepared).catch(() => count(0));
        if (!connection)
            return;
        while (next < requests.length && !stopped.signal.aborted) {
            const number = next++;
            let due = performance.now();
            if (rate !== undefined) {
                // Open loop: the delay is counted from the planned time of the request, not from the time when it was really
                // sent.
                due = started + (1000 * number) / rate;
                const wait = due - performance.now();
                if (wait > 0)
                    await sleep(wait, undefined, { signal: stopped.signal }).catch(() => { });
                if (stopped.signal.aborted)
                    break;
            }
            const { status, body } = await connection.exchange(requests[number]);
            const now = performance.now();
            count(status);
            if (status === 0)
                return;
            // A refusal is quick; its time would flatter the rest.
            if (status !== 200)
                continue;
            latencies.push(now - due);
            finished.push(now - started);
            if (number % SAMPLE_EVERY === 0) {
                const { entry_hash, leaf_index, sth } = JSON.parse(body);
                void tell({ kind: "sampled", sample: { entry_hash, leaf_index, sth } });
            }
        }
        connection.close();
    };
    await Promise.all(Array.from({ length: prepared.connections }, work));
    return { kind: "done", latencies, finished, statuses };
}
const tell = (reply) => new Promise((resolve) => process.send(reply, undefined, {}, () => resolve()));
let prepared = null;
process.on("message", async (order) => {
    if (order.kind === "stop")
        stopped.abort();
    else if (order.kind === "prepare") {
        prepared = { order, requests: prepare(order) };
        await tell({ kind: "ready" });
    }
    else if (prepared) {
        // A channel that is closed too soon drops messages that are not sent yet.
        await tell(await run(prepared.requests, prepared.order, order));
        process.disconnect();
    }
});
// Ctrl-C reaches the whole group of processes; the parent decides what happens.
process.on("SIGINT", () => { });
// Without the parent there is nobody to work for.
process.on("disconnect", () => process.exit());
//# sourceMappingURL=client.js.map