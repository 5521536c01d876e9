/** Runs client processes against a service and collects their measurements. */
import { fork } from "node:child_process";
const CLIENT = new URL("./client.js", import.meta.url);
/** A client process and its messages. */
class Client {
    #child;
    #expected = null;
    constructor(onSample) {
        this.#child = fork(CLIENT, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
        this.#child.on("message", (reply) => {
            if (reply.kind === "sampled")
                return onSample(reply.sample);
            if (reply.kind !== this.#expected?.kind)
                throw new Error(`a client said ${reply.kind} out of turn`);
            this.#expected.resolve(reply);
            this.#expected = null;
        });
        this.#child.on("exit", () => this.#expected?.reject(new Error("a client process ended before it was done")));
    }
    /** Sends an order and resolves with the reply to it. */
    ask(order, kind) {
        return new Promise((resolve, reject) => {
            this.#expected = { kind, resolve: resolve, reject };
            this.#child.send(order);
        });
    }
    stop() {
        if (this.#child.connected)
            this.#child.send({ kind: "stop" });
    }
    kill() {
        this.#child.kill();
    }
}
/** Starts the clients and lets them sign all requests. @throws if `signal` aborts before that is done */
export async function prepareLoad(options) {
    const { clients, requests, connections, host = "127.0.0.1", port, name, rate, signal } = options;
    const children = Array.from({ length: clients }, () => new Client(options.onSample ?? (() => { })));
    const killAll = () => {
        for (const child of children)
            child.kill();
    };
    signal?.addEventListener("abort", killAll);
    await Promise.all(children.map((child, i) => {
        const share = {
            kind: "prepare",
            host,
            port,
            requests: Math.ceil(requests / clients),
            connections: Math.max(1, Math.round(connections / clients)),
            name: `${name} client ${i}`,
        };
        return child.ask(share, "ready");
    }));
    signal?.removeEventListener("abort", killAll);
    return {
        async run() {
            const stop = () => {
                for (const child of children)
                    child.stop();
            };
            signal?.addEventListener("abort", stop);
            const started = performance.now();
            const results = await Promise.all(children.map((child) => child.ask({ kind: "start", ...(rate === undefined ? {} : { rate: rate / clients }) }, "done")));
            signal?.removeEventListener("abort", stop);
            return combine(results, (performance.now() - started) / 1000);
        },
    };
}
function combine(results, seconds) {
    const answers = results
        .flatMap(({ latencies, finished }) => latencies.map((latency, i) => ({ at: finished[i], latency })))
        .sort((a, b) => a.at - b.at);
    const statuses = {};
    for (const result of results)
        for (const [status, count] of Object.entries(result.statuses))
            statuses[Number(status)] = (statuses[Number(status)] ?? 0) + count;
    return {
        seconds,
        answered: Object.entries(statuses).reduce((sum, [status, count]) => sum + (status === "0" ? 0 : count), 0),
        latencies: answers.map(({ latency }) => latency).sort((a, b) => a - b),
        answers,
        statuses,
    };
}
/** The latency that this share of all answers did not exceed. */
export function percentile(ascending, share) {
    return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;
}
//# sourceMappingURL=generator.js.map