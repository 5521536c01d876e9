/** Attestations one by one over HTTP: their cost beside the bare server's, with every number of front ends. */
import { ratios } from "../stats.js";
import { CHECKOUT, knowsFrontEnds, type Service, startService } from "./service.js";
import { type Measured, type Row, type Stage, takeTurns } from "./stage.js";
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
 * So many connections fill batches beyond the heads that the writer's thread signs itself: as a load does for which that thread
 * is the limit.
 */
const MANY_CONNECTIONS = 512;

/** For every attestation: microseconds of CPU, of all threads and of the main one; and the rate. */
export interface Cost {
  readonly all: number;
  readonly main: number;
  readonly perSecond: number;
}

/** A process that answers, and the number of entries in its log if it has one. */
export type Target = Pick<Service, "pid" | "port"> & Partial<Pick<Service, "size">>;

/**
 * Sends the prepared requests.
 * @throws if one of them is not answered with 200, or an attestation is not on the log afterwards
 */
export async function load(stage: Stage, target: Target, requests: number, connections: number): Promise<Cost> {
  const sizeBefore = await target.size?.();
  const { cpu, result } = await cpuOfProcess(target.pid, () => stage.generator.post(target.port, connections));
  if (result.statuses[200] !== requests) throw new Error(`answers by status: ${JSON.stringify(result.statuses)}`);
  if (sizeBefore !== undefined && (await target.size!()) < sizeBefore + ATTESTATIONS)
    throw new Error("not every attestation is on the log");
  return { all: cpu.all / ATTESTATIONS, main: cpu.main / ATTESTATIONS, perSecond: ATTESTATIONS / result.seconds };
}

/** Lets the bare server answer with as many bytes as this service. */
export async function matchAnswers({ generator, bare }: Stage, { port }: Target): Promise<void> {
  await generator.sign({ attestations: 1, name: "length of an answer" });
  await bare.answerWith((await generator.post(port, 1)).bytes);
}

/** Costs of the bare server and of these targets, which all get the same requests. */
export function compareCosts<Name extends string>(
  stage: Stage,
  targets: Readonly<Record<Name, Target>>,
  connections = CONNECTIONS,
): Promise<Record<Name | "bare", Cost[]>> {
  const contenders = Object.entries<Target>({ ...targets, bare: stage.bare }).map(([name, target]) => [
    name,
    () => load(stage, target, ATTESTATIONS, connections),
  ]);
  return takeTurns(
    stage.rounds,
    Object.fromEntries(contenders) as Record<Name | "bare", () => Promise<Cost>>,
    (round) => stage.generator.sign({ attestations: ATTESTATIONS, name: `${connections} connections, round ${round}` }),
  );
}

/** One number of each round. */
export const column = (costs: readonly Cost[], name: keyof Cost): number[] => costs.map((cost) => cost[name]);

/** The rows of one contender. */
export function costRows(title: string, costs: readonly Cost[], bare: readonly Cost[]): Row[] {
  const all = column(costs, "all");
  return [
    { figure: `${title}: CPU of an attestation / bare`, rounds: ratios(all, column(bare, "all")), digits: 2 },
    { figure: `${title}: CPU of an attestation, µs`, rounds: all, digits: 1 },
    { figure: `${title}: attestations a second`, rounds: column(costs, "perSecond"), digits: 0 },
  ];
}

/** The rows of the writer's thread. */
function writerRows(connections: number, costs: readonly Cost[], bare: readonly Cost[]): Row[] {
  const micros = column(costs, "main");
  const title = `the writer's thread with ${WRITER_WITH} front ends, ${connections} connections`;
  return [
    { figure: `${title}: CPU of an attestation / bare`, rounds: ratios(micros, column(bare, "all")), digits: 2 },
    { figure: `${title}: CPU of an attestation, µs`, rounds: micros, digits: 1 },
  ];
}

/** @param service one with the default number of front ends, already running */
export async function measureAttestations(stage: Stage, service: Service): Promise<Measured> {
  const others: Record<string, Service> = {};
  try {
    if (knowsFrontEnds(CHECKOUT))
      for (const frontEnds of FRONT_ENDS)
        others[`${frontEnds} front ends`] = await startService({
          checkout: CHECKOUT,
          dataDir: `${stage.folder}/${frontEnds}-front-ends`,
          frontEnds,
        });
    else console.log("This version has no front ends: the rows about their number are left out.");
    const costs: Record<string, Cost[]> = await compareCosts(stage, { "default front ends": service, ...others });
    const { bare, ...services } = costs;
    const rows = Object.entries(services).flatMap(([name, own]) => costRows(name, own, bare!));
    rows.push({ figure: "bare: CPU, µs", rounds: column(bare!, "all"), digits: 1 });
    const name = `${WRITER_WITH} front ends`;
    const writer = services[name];
    if (!writer) return { rows, details: costs };
    rows.push(...writerRows(CONNECTIONS, writer, bare!));
    const { bare: manyBare, [name]: many } = await compareCosts(stage, { [name]: others[name]! }, MANY_CONNECTIONS);
    rows.push(...writerRows(MANY_CONNECTIONS, many!, manyBare!));
    return { rows, details: { ...costs, many, manyBare } };
  } finally {
    for (const other of Object.values(others)) await other.close();
  }
}
