/**
 * The load generator of this suite, in a process of its own. It stays for the whole run, so that its code is compiled
 * for all contenders alike, and sends the same requests to each of them: only the servers' CPU is measured.
 */
import { openConnection, postRequest } from "../load/connection.js";
import { signedSubmissions } from "../load/submissions.js";
import { answerOrders, startChild } from "./child.js";
const HOST = "127.0.0.1";
const SINGLE = "/api/v1/attestations";
const BATCH = "/api/v1/attestations/batch";
let requests = [];
function sign({ attestations, perRequest, name }) {
    const submissions = signedSubmissions(attestations, name);
    const place = { host: HOST, port: 80 };
    requests =
        perRequest === undefined
            ? submissions.map((one) => postRequest(place, SINGLE, JSON.stringify(one)))
            : Array.from({ length: Math.ceil(attestations / perRequest) }, (_, n) => {
                const share = submissions.slice(n * perRequest, (n + 1) * perRequest);
                return postRequest(place, BATCH, JSON.stringify({ submissions: share }));
            });
    return requests.length;
}
async function send(port, connections, all) {
    const opened = await Promise.all(Array.from({ length: connections }, () => openConnection({ host: HOST, port })));
    const statuses = {};
    let [next, bytes] = [0, 0];
    const started = performance.now();
    await Promise.all(opened.map(async (connection) => {
        while (next < all.length) {
            const { status, body } = await connection.exchange(all[next++]);
            statuses[status] = (statuses[status] ?? 0) + 1;
            bytes += body.length;
            if (status === 0)
                return;
        }
    }));
    const seconds = (performance.now() - started) / 1000;
    for (const connection of opened)
        connection.close();
    return { seconds, statuses, bytes: bytes / all.length };
}
/** Microseconds of every answer, for each port. */
async function alternate({ ports }) {
    const opened = await Promise.all(ports.map((port) => openConnection({ host: HOST, port })));
    const times = ports.map(() => []);
    for (const request of requests)
        for (const [i, connection] of opened.entries()) {
            const started = performance.now();
            const { status } = await connection.exchange(request);
            times[i].push((performance.now() - started) * 1000);
            if (status !== 200)
                throw new Error(`port ${ports[i]} answered ${status}`);
        }
    for (const connection of opened)
        connection.close();
    return times;
}
const getRequest = (path) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
function handle(order) {
    switch (order.kind) {
        case "sign":
            return sign(order);
        case "post":
            return send(order.port, order.connections, requests);
        case "alternate":
            return alternate(order);
        case "get": {
            const { port, connections, prefix, numbers } = order;
            return send(port, connections, numbers.map((number) => getRequest(`${prefix}${number}`)));
        }
    }
}
/** The parent's side. */
export class Generator {
    #child = startChild(new URL(import.meta.url));
    /** Resolves with the number of requests. */
    sign(order) {
        return this.#ask({ kind: "sign", ...order });
    }
    post(port, connections) {
        return this.#ask({ kind: "post", port, connections });
    }
    alternate(...ports) {
        return this.#ask({ kind: "alternate", ports });
    }
    get(port, connections, prefix, numbers) {
        return this.#ask({ kind: "get", port, connections, prefix, numbers });
    }
    close() {
        return this.#child.close();
    }
    #ask(order) {
        return this.#child.ask(order);
    }
}
if (process.argv[1] === import.meta.filename)
    answerOrders(handle);
//# sourceMappingURL=generator.js.map