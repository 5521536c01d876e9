/**
 * What many signers cost: the CPU of an attestation if its signers are many instead of one, if many more keys are
 * registered than sign, and if every attestation is the first of its key.
 */
import { hash } from "node:crypto";
import { join } from "node:path";
import { readSettings, startServer } from "cairnlog/server";
import { canonicalJson } from "cairnlog/verify";
import { ratios } from "../stats.js";
import { ATTESTATIONS, CONNECTIONS, type Cost, column, load } from "./attestations.js";
import { answerOrders, startChild } from "./child.js";
import { type Crowd, signerIn } from "./crowd.js";
import { CHECKOUT, type Service, startService } from "./service.js";
import { type Measured, type Row, type Stage, takeTurns } from "./stage.js";

/** Numbers of signers that take turns. */
const IN_USE = [1, 3_000, 20_000] as const;
/** Registrations in one append while a registry is filled. */
const BATCH = 1_000;
/** Steps by this prime reach every registered key once before one comes again. */
const STEP = 7_368_787;
const REGISTERED = "registered before";
const ONE = "one of many";

/** Fills a new data directory with a registry of this many keys. */
interface Fill {
  readonly dataDir: string;
  readonly keys: number;
}

/**
 * The event that `POST /keys/register` records. Keys of even numbers have signed their registration, as the client and the
 * command have them do; the others were registered by somebody else, so their first signature changes their rows.
 */
function registration(n: number) {
  const { public_key_pem: public_key, sign } = signerIn(REGISTERED, n);
  const fingerprint = `sha256:${hash("sha256", Buffer.from(public_key.split("\n")[1]!, "base64"))}`;
  const pseudonym = `signer ${n}`;
  const statement = { action: "service.key.register.v1", expiration_date: null, fingerprint, pseudonym };
  const possession_signature = n % 2 ? null : sign(Buffer.from(canonicalJson(statement)));
  return {
    event_type: "key_registration",
    payload: {
      fingerprint,
      public_key,
      pseudonym,
      expiration_date: null,
      key_algorithm: "ed25519",
      possession_signature,
    },
  };
}

async function fill({ dataDir, keys }: Fill): Promise<null> {
  const { registry, close } = await startServer(
    readSettings({ PORT: "0", SERVICE_DATA_DIR: dataDir, SERVICE_FRONT_ENDS: "0", LOG_LEVEL: "error" }),
  );
  for (let n = 0; n < keys; n += BATCH)
    await registry.writer.append(Array.from({ length: Math.min(BATCH, keys - n) }, (_, i) => registration(n + i)));
  await close();
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
  const registered = `${keys.toLocaleString("en")} keys registered`;
  /** Signers of even or odd numbers, so that each of them signs once. */
  const random = (parity: 0 | 1) =>
    contender(stage, large, (round) => ({
      name: REGISTERED,
      size: keys,
      first: (2 * round * ATTESTATIONS * STEP + parity) % keys,
      step: (2 * STEP) % keys,
    }));
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
      [`${registered}, one signs`]: contender(stage, large, () => ({ name: ONE, size: 1, first: 0, step: 1 })),
      [`${registered}, a random one signs`]: random(0),
      [`${registered} by others, a random one signs for the first time`]: random(1),
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
