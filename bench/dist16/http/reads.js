/**
 * The cost of reading over HTTP: `GET /log/{id}` and `GET /log/proof/{index}` compared with servers that only answer,
 * with bodies of the same length, in turns in one process. Our client process costs more than a bare uWS server, so the
 * client also limits the requests a second. It does not limit the server's CPU for each request, whose inverse is the
 * rate of a saturated core.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { answerSize } from "../load/reader.js";
import { cpuMicros, median, ratios, spread } from "../stats.js";
import { openEchoes } from "./floors.js";
const ROUNDS = 5;
const ROUND_MS = 400;
const CONNECTIONS = 64;
/** Forked before anything is measured, and kept, so that its code is compiled for all contenders alike. */
function startReader() {
    const child = fork(new URL("../load/reader.js", import.meta.url));
    const ended = once(child, "exit").then(() => null);
    return {
        async read(task) {
            child.send(task);
            const message = await Promise.race([once(child, "message"), ended]);
            if (!message)
                throw new Error("the reading process ended");
            return message[0];
        },
        close: () => child.disconnect(),
    };
}
/** Measures the service's answer to `path` and the echoes of its length; prints a table. */
async function measurePath(reader, service, path) {
    const { body } = await answerSize({ port: service, path });
    const echoes = await openEchoes(body);
    const contenders = [...echoes, { name: "cairnlog", port: service }];
    const rounds = contenders.map(() => ({ rates: [], cpu: [], p50: [] }));
    try {
        for (let round = 0; round <= ROUNDS; round++)
            for (const [i, { port }] of contenders.entries()) {
                const before = process.cpuUsage();
                const result = await reader.read({ port, path, connections: CONNECTIONS, milliseconds: ROUND_MS });
                const cpu = cpuMicros(before) / result.requests;
                if (round === 0)
                    continue;
                rounds[i].rates.push(result.requests / result.seconds);
                rounds[i].cpu.push(cpu);
                rounds[i].p50.push(result.p50);
            }
    }
    finally {
        for (const echo of echoes)
            await echo.close();
    }
    const bare = rounds[0];
    console.log(`\nGET ${path}: ${body} bytes, ${CONNECTIONS} keep-alive connections`);
    console.table(contenders.map(({ name }, i) => {
        const { rates, cpu, p50 } = rounds[i];
        return {
            server: name,
            "per second": spread(rates, 0),
            "share of bare uWS": spread(ratios(rates, bare.rates), 2),
            "CPU µs": spread(cpu),
            "share of bare uWS by CPU": spread(ratios(bare.cpu, cpu), 2),
            "p50 µs": median(p50).toFixed(0),
        };
    }));
    return Object.fromEntries(contenders.map(({ name }, i) => [name, rounds[i]]));
}
/** Measures reads of a service that has some entries. */
export async function measureReads(port, entries) {
    const reader = startReader();
    try {
        const middle = Math.floor(entries / 2);
        const results = {};
        for (const path of [`/api/v1/log/${middle}`, `/api/v1/log/proof/${middle}`])
            results[path] = await measurePath(reader, port, path);
        return results;
    }
    finally {
        reader.close();
    }
}
//# sourceMappingURL=reads.js.map