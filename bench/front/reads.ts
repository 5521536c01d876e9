/**
 * Reads all over a log, none of which was asked for before, so that no answer is kept in memory: their CPU beside that of
 * a bare answer of as many bytes.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey, openLog, operatorKey } from "cairnlog";
import { ratios } from "../stats.js";
import { answerOrders, startChild } from "./child.js";
import { CHECKOUT, type Service, startService } from "./service.js";
import { type Measured, type Row, type Stage, takeTurns, WARM_ROUNDS } from "./stage.js";
import { cpuOfProcess } from "./threads.js";

const CONNECTIONS = 64;
/** Reads of each kind in a round, if the log has enough entries. */
const MAX_READS = 10_000;
/** Appends that wait at any time while the log is filled: its batches have the size that this traffic gives them. */
const IN_FLIGHT = 64;
/** Bytes of a payload, as in a typical attestation. */
const PAYLOAD_BYTES = 600;
/** Steps by this prime reach every entry once before one comes again. */
const STEP = 7_368_787;

/** Path of each kind, up to its number, and the first number. */
const KINDS = {
  "GET /log/{id}": { prefix: "/api/v1/log/", first: 1 },
  "GET /log/proof/{i}": { prefix: "/api/v1/log/proof/", first: 0 },
};

/** Fills a new data directory with a log of this many entries. */
interface Fill {
  readonly dataDir: string;
  readonly entries: number;
}

async function fill({ dataDir, entries }: Fill): Promise<null> {
  mkdirSync(dataDir, { mode: 0o700 });
  const pem = generatePrivateKey("ed25519");
  writeFileSync(join(dataDir, "operator.pem"), pem, { mode: 0o600 });
  const log = await openLog({ path: join(dataDir, "log"), signer: operatorKey(pem) });
  let next = 0;
  const client = async () => {
    while (next < entries) {
      const text = `${next++} `.padEnd(PAYLOAD_BYTES, "all payloads are of one length; ");
      await log.append({ event_type: "note", payload: { text } });
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  await log.close();
  return null;
}

/** Microseconds of a read, and the mean length of the answers. */
interface Cost {
  readonly all: number;
  readonly bytes: number;
}

async function measureKind(
  stage: Stage,
  service: Service,
  { prefix, first }: { readonly prefix: string; readonly first: number },
  entries: number,
): Promise<Record<"service" | "bare", Cost[]>> {
  const { generator, bare, rounds } = stage;
  let asked = 0;
  let numbers: number[] = [];
  const read = async ({ pid, port }: Pick<Service, "pid" | "port">): Promise<Cost> => {
    const { cpu, result } = await cpuOfProcess(pid, () => generator.get(port, CONNECTIONS, prefix, numbers));
    if (result.statuses[200] !== numbers.length)
      throw new Error(`answers by status: ${JSON.stringify(result.statuses)}`);
    return { all: cpu.all / numbers.length, bytes: result.bytes };
  };
  // Every round reads other entries; one more round finds out how long the answers are.
  const count = Math.min(MAX_READS, Math.floor(entries / (WARM_ROUNDS + rounds + 1)));
  const choose = () => {
    numbers = Array.from({ length: count }, () => first + ((asked++ * STEP) % entries));
  };
  choose();
  await bare.answerWith((await read(service)).bytes);
  return takeTurns(rounds, { service: () => read(service), bare: () => read(bare) }, async () => choose());
}

/** Fills a log of this many entries, serves it, and reads it. */
export async function measureReads(stage: Stage, entries: number): Promise<Measured> {
  const dataDir = join(stage.folder, "reads");
  const child = startChild(new URL(import.meta.url));
  try {
    await child.ask({ dataDir, entries } satisfies Fill);
  } finally {
    await child.close();
  }
  const service = await startService({ checkout: CHECKOUT, dataDir });
  const rows: Row[] = [];
  const details: Record<string, unknown> = {};
  try {
    for (const [name, kind] of Object.entries(KINDS)) {
      const costs = await measureKind(stage, service, kind, entries);
      const [own, bare] = [costs.service.map(({ all }) => all), costs.bare.map(({ all }) => all)];
      rows.push({
        figure: `${name}, ${entries.toLocaleString("en")} entries: CPU / bare answer`,
        rounds: ratios(own, bare),
        digits: 2,
      });
      rows.push({ figure: `${name}: CPU, µs`, rounds: own, digits: 1 });
      details[name] = costs;
    }
  } finally {
    await service.close();
  }
  return { rows, details };
}

if (process.argv[1] === import.meta.filename) answerOrders(fill);
