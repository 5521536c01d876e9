/**
 * What it costs to keep the operator key in another process: durable appends of the engine with the key in memory, and
 * with the sample signer for PEM files behind its socket. CPU is counted in both processes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createPool, generatePrivateKey, openLog, operatorKey, signerAt } from "cairnlog";
import { median, ratios, spread } from "../stats.js";
import { drive } from "./appenders.js";
const SAMPLE = fileURLToPath(new URL("../../../docs/examples/signer/pem-signer.mjs", import.meta.url));
const IN_FLIGHT = [64, 512];
const ROUNDS = 7;
const ROUND_MS = 700;
const ALGORITHMS = ["ed25519", "ecdsa-p256"];
const PAYLOAD = { text: "x".repeat(588) };
/** Microseconds of one tick in /proc. */
const TICK_MICROS = 10_000;
/** Microseconds of CPU that a process has used. */
function usedBy(child) {
    if (!child)
        return 0;
    const fields = readFileSync(`/proc/${child.pid}/stat`, "latin1").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MICROS;
}
async function openContenders(folder) {
    const pool = createPool();
    const closing = [() => pool.close()];
    const contenders = [];
    for (const algorithm of ALGORITHMS) {
        const pem = generatePrivateKey(algorithm);
        const file = join(folder, `${algorithm}.pem`);
        writeFileSync(file, pem, { mode: 0o600 });
        const socket = join(folder, `${algorithm}.sock`);
        const child = spawn(process.execPath, [SAMPLE, socket, file], { stdio: ["ignore", "pipe", "inherit"] });
        await once(createInterface({ input: child.stdout }), "line");
        const remote = await signerAt(`unix:${socket}`, { pool });
        closing.push(async () => {
            await remote.close();
            child.kill();
        });
        const inMemory = await openLog({ path: join(folder, `${algorithm}-memory`), signer: operatorKey(pem, pool), pool });
        const behindSocket = await openLog({ path: join(folder, `${algorithm}-socket`), signer: remote, pool });
        closing.push(() => inMemory.close(), () => behindSocket.close());
        for (const inFlight of IN_FLIGHT) {
            const base = `${algorithm} in memory, ${inFlight} in flight`;
            const appender = { inFlight, batch: 1, base };
            const event = { event_type: "note", payload: PAYLOAD };
            contenders.push({ ...appender, name: base, signer: null, call: () => inMemory.append(event) }, {
                ...appender,
                name: `${algorithm} behind a socket, ${inFlight} in flight`,
                signer: child,
                call: () => behindSocket.append(event),
            });
        }
    }
    return {
        contenders,
        close: async () => {
            for (const close of closing.toReversed())
                await close();
        },
    };
}
async function measure(folder) {
    const { contenders, close } = await openContenders(folder);
    const measured = new Map(contenders.map(({ name }) => [name, { rates: [], cpu: [], signerCpu: [] }]));
    try {
        for (let round = 0; round <= ROUNDS; round++)
            for (const contender of contenders) {
                const before = usedBy(contender.signer);
                const { appends, rate, cpu } = await drive(contender, ROUND_MS);
                // The first round warms up compilers and caches.
                if (round === 0)
                    continue;
                const rounds = measured.get(contender.name);
                rounds.rates.push(rate);
                rounds.cpu.push(cpu);
                rounds.signerCpu.push((usedBy(contender.signer) - before) / appends);
            }
    }
    finally {
        await close();
    }
    console.log("\nAppends on disk with a signed head each, the operator key in memory and behind a socket");
    console.table(contenders.map(({ name, base }) => {
        const { rates, cpu, signerCpu } = measured.get(name);
        const own = measured.get(base);
        return {
            contender: name,
            "appends a second": spread(rates, 0),
            "of those in memory": median(ratios(rates, own.rates)).toFixed(2),
            "CPU µs of the log's process": spread(cpu),
            "× in memory": median(ratios(cpu, own.cpu)).toFixed(2),
            "CPU µs of the signer": spread(signerCpu),
        };
    }));
    return Object.fromEntries(measured);
}
export const suite = {
    summary: "the engine's appends with the operator key in memory and behind a socket",
    async run() {
        const folder = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
        try {
            return await measure(folder);
        }
        finally {
            rmSync(folder, { recursive: true, force: true });
        }
    },
};
//# sourceMappingURL=signer.js.map