/**
 * What many signers cost: the CPU of an attestation if its signers are many instead of one, if many more keys are
 * registered than sign, and if every attestation is the first of its key.
 */
import { join } from "node:path";
import { readSettings, startServer } from "cairnlog/server";
import { ratios } from "../stats.js";
import { ATTESTATIONS, CONNECTIONS, type Cost, column, load } from "./attestations.js";
import { answerOrders, startChild } from "./child.js";
import { type Crowd, signerIn } from "./crowd.js";
import { CHECKOUT, type Service, startService } from "./service.js";
import { type Measured, type Row, type Stage, takeTurns } from "./stage.js";

/** Numbers of signers that take turns. */
const IN_USE = [1, 3_000, 20_000] as const;
/** Registrations that wait at any time while a registry is filled. */
const IN_FLIGHT = 256;
/** Steps by this prime reach every registered key once before one comes again. */
const STEP = 7_368_787;
const REGISTERED = "registered before";

/** Fills a new data directory with a registry of this many keys. */
interface Fill {
  readonly dataDir: string;
  readonly keys: number;
}

async function fill({ dataDir, keys }: Fill): Promise<null> {
  const server = await startServer(
    readSettings({ PORT: "0", SERVICE_DATA_DIR: dataDir, SERVICE_RATE_LIMITS: "off", LOG_LEVEL: "silent" }),
  );
  let next = 0;
  const client = async () => {
    while (next < keys) {
      const { public_key_pem: public_key } = signerIn(REGISTERED, next++);
      await server.registry.keys.register({ public_key, pseudonym: `signer ${next}`, key_algorithm: "ed25519" });
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  await server.close();
  return null;
}

/** One round: attestations by these signers, which are signed before it. */
function contender(stage: Stage, service: Service, crowd: (round: number) => Crowd): () => Promise<Cost> {
  let round = 0;
  return async () => {
    const signers = crowd(round++);
    await stage.generator.sign({ attestations: ATTESTATIONS, name: `${signers.name}, round ${round}`, signers });
    return load(stage, service, ATTESTATIONS, CONNECTIONS);
  };
}

/** @param keys number of keys in the large registry */
export async function measureSigners(stage: Stage, keys: number): Promise<Measured> {
  const dataDir = join(stage.folder, "registered");
  const child = startChild(new URL(import.meta.url));
  try {
    await child.ask({ dataDir, keys } satisfies Fill);
  } finally {
    await child.close();
  }
  const small = await startService({ checkout: CHECKOUT, dataDir: join(stage.folder, "signers") });
  const large = await startService({ checkout: CHECKOUT, dataDir });
  const name = (count: number) => `signers in turn: ${count.toLocaleString("en")}`;
  const registered = `${keys.toLocaleString("en")} keys registered, a random one signs`;
  const NEW = "a new key signs";
  try {
    const costs = await takeTurns(stage.rounds, {
      ...Object.fromEntries(
        IN_USE.map((size) => [
          name(size),
          contender(stage, small, (round) => ({
            name: `${size}`,
            size,
            first: (round * ATTESTATIONS) % size,
            step: 1,
          })),
        ]),
      ),
      [registered]: contender(stage, large, (round) => ({
        name: REGISTERED,
        size: keys,
        first: (round * ATTESTATIONS * STEP) % keys,
        step: STEP % keys,
      })),
      [NEW]: contender(stage, small, (round) => ({
        name: NEW,
        size: Number.MAX_SAFE_INTEGER,
        first: round * ATTESTATIONS,
        step: 1,
      })),
    });
    const one = column(costs[name(1)]!, "all");
    const rows = Object.entries(costs).flatMap(([title, own]): Row[] => {
      const micros = column(own, "all");
      return [
        { figure: `${title}: CPU of an attestation, µs`, rounds: micros, digits: 1 },
        { figure: `${title}: CPU / one signer's`, rounds: ratios(micros, one), digits: 2 },
      ];
    });
    return { rows, details: costs };
  } finally {
    await small.close();
    await large.close();
  }
}

if (process.argv[1] === import.meta.filename) answerOrders(fill);
