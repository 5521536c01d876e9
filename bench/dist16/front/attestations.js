/** Attestations one by one over HTTP: their cost beside the bare server's, with every number of front ends. */
import { ratios } from "../stats.js";
import { CHECKOUT, knowsFrontEnds, startService } from "./service.js";
import { takeTurns } from "./stage.js";
import { cpuOfProcess } from "./threads.js";
/** Attestations of one round for each contender. */
export const ATTESTATIONS = 10_000;
/** More than any machine of ours has cores. */
export const CONNECTIONS = 64;
/** Numbers of front ends; 0 serves on the writer's own thread. */
const FRONT_ENDS = [0, 2, 4, 8];
/** The number for which the writer's thread is compared with the bare server. */
const WRITER_WITH = 4;
/**
 * Sends the prepared requests.
 * @throws if one of them is not answered with 200, or an attestation is not on the log afterwards
 */
export async function load(stage, target, requests, connections) {
    const sizeBefore = await target.size?.();
    const { cpu, result } = await cpuOfProcess(target.pid, () => stage.generator.post(target.port, connections));
    if (result.statuses[200] !== requests)
        throw new Error(`answers by status: ${JSON.stringify(result.statuses)}`);
    if (sizeBefore !== undefined && (await target.size()) < sizeBefore + ATTESTATIONS)
        throw new Error("not every attestation is on the log");
    return { all: cpu.all / ATTESTATIONS, main: cpu.main / ATTESTATIONS, perSecond: ATTESTATIONS / result.seconds };
}
/** Lets the bare server answer with as many bytes as this service. */
export async function matchAnswers({ generator, bare }, { port }) {
    await generator.sign({ attestations: 1, name: "length of an answer" });
    await bare.answerWith((await generator.post(port, 1)).bytes);
}
/** Costs of the bare server and of these targets, which all get the same requests. */
export function compareCosts(stage, targets) {
    const contenders = Object.entries({ ...targets, bare: stage.bare }).map(([name, target]) => [
        name,
        () => load(stage, target, ATTESTATIONS, CONNECTIONS),
    ]);
    return takeTurns(stage.rounds, Object.fromEntries(contenders), (round) => stage.generator.sign({ attestations: ATTESTATIONS, name: `one by one, round ${round}` }));
}
/** One number of each round. */
export const column = (costs, name) => costs.map((cost) => cost[name]);
/** The rows of one contender. */
export function costRows(title, costs, bare) {
    const all = column(costs, "all");
    return [
        { figure: `${title}: CPU of an attestation / bare`, rounds: ratios(all, column(bare, "all")), digits: 2 },
        { figure: `${title}: CPU of an attestation, µs`, rounds: all, digits: 1 },
        { figure: `${title}: attestations a second`, rounds: column(costs, "perSecond"), digits: 0 },
    ];
}
/** @param service one with the default number of front ends, already running */
export async function measureAttestations(stage, service) {
    const others = {};
    try {
        if (knowsFrontEnds(CHECKOUT))
            for (const frontEnds of FRONT_ENDS)
                others[`${frontEnds} front ends`] = await startService({
                    checkout: CHECKOUT,
                    dataDir: `${stage.folder}/${frontEnds}-front-ends`,
                    frontEnds,
                });
        else
            console.log("This version has no front ends: the rows about their number are left out.");
        const costs = await compareCosts(stage, { "default front ends": service, ...others });
        const { bare, ...services } = costs;
        const rows = Object.entries(services).flatMap(([name, own]) => costRows(name, own, bare));
        rows.push({ figure: "bare: CPU, µs", rounds: column(bare, "all"), digits: 1 });
        const writer = services[`${WRITER_WITH} front ends`];
        if (writer) {
            const micros = column(writer, "main");
            const title = `the writer's thread with ${WRITER_WITH} front ends`;
            rows.push({
                figure: `${title}: CPU of an attestation / bare`,
                rounds: ratios(micros, column(bare, "all")),
                digits: 2,
            });
            rows.push({ figure: `${title}: CPU of an attestation, µs`, rounds: micros, digits: 1 });
        }
        return { rows, details: costs };
    }
    finally {
        for (const other of Object.values(others))
            await other.close();
    }
}
//# sourceMappingURL=attestations.js.map