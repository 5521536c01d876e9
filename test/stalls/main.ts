/** `npm run stalls`: the worst request of every operation, and how long it blocks the event loop. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { operatorKey, writeKeyFile } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openRegistry } from "#cairnlog/engine/registry/registry.js";
import { openReceivers } from "../../bench/strangers/receivers.js";
import { Inputs, type Operation } from "../fuzz/inputs.js";
import { type Input, send } from "../fuzz/wire.js";
import { World } from "../fuzz/world.js";
import { readCommand, wholeNumber } from "../reliability/command.js";
import { letStrangersRegister } from "../reliability/strangers.js";
import { scratchFolder, startService } from "../service.js";
import { LIMIT_MS, longestTurn, probedAlone } from "./loop.js";
import { type Worst, worstOf } from "./worst.js";

const help = `npm run stalls -- [OPTIONS]

Makes the worst requests of every operation from the schemas in the service's own OpenAPI document: each member in turn as
large, as many, as deep and as odd as a body carries it, each parameter at its ends. Sends each of them twelve times at once
to a service that it starts, and asks a probe in it for the longest turn of the event loop, in processor time. Strangers have
registered at this service what they may: 5,000 subscriptions whose receivers fail, hang, are slow or work, policies, trust
configurations and endorsements.

Options:
  --entries N  Entries in the log before; default 60000.
  --only TEXT  Operations whose name holds TEXT.
  --json FILE  Writes the figures.

Exit code: 0 nothing held the loop for more than ${LIMIT_MS} ms, 1 something did.

Example:
  npm run stalls -- --only /verify`;

const AT_ONCE = 12;
/** Number of an operation's requests that are sent several times at once. */
const CROWDED = 3;
const BATCH = 2_000;
/**
 * Number of attempts for a request that seems too slow. The shortest time counts, since any request may include garbage
 * collection.
 */
const TRIES = 3;

const options = readCommand(help, {
  entries: { type: "string" },
  only: { type: "string", default: "" },
  json: { type: "string" },
});
const entries = wholeNumber("entries", options.entries, 60_000);

/**
 * Fills the log. Every entry names one key and one of a few documents, so that filters and searches have many results.
 */
async function fill(dataDir: string): Promise<void> {
  const pem = generatePrivateKey("ed25519");
  const pool = createPool();
  const operator = operatorKey(pem, pool);
  const path = join(dataDir, "log");
  const registry = await openRegistry({ path, operator, pool, predicateBase: "https://example.org/predicates" });
  const event = (n: number) => ({
    event_type: "https://example.org/bench/v1",
    payload: {
      document_hash: `sha256:${n % 2 ? "abcd" : ""}${n.toString(16).padStart(n % 2 ? 60 : 64, "0")}`,
      signer_key_fingerprint: `sha256:${(n % 3).toString(16).padStart(64, "a")}`,
      tags: ["bench", n % 2 ? "odd" : "even"],
    },
  });
  for (let n = 0; n < entries; n += BATCH)
    await registry.log.append(Array.from({ length: Math.min(BATCH, entries - n) }, (_, i) => event(n + i)));
  await registry.close();
  await pool.close();
  writeKeyFile(join(dataDir, "operator.pem"), pem);
}

interface Figure {
  readonly operation: string;
  readonly milliseconds: number;
  readonly what: string;
}

/** The longest turn while an input is sent this number of times at once. */
async function held(turns: string, port: number, input: Input, atOnce: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && least > LIMIT_MS; tries++) {
    await longestTurn(turns);
    await Promise.all(Array.from({ length: atOnce }, () => send(port, input)));
    least = Math.min(least, await longestTurn(turns));
  }
  return least;
}

/** Measures every request alone, and the slowest of them twelve times at once. */
async function worst(turns: string, port: number, world: World, inputs: Inputs, operation: Operation): Promise<Figure> {
  const alone: [number, Worst][] = [];
  for await (const one of worstOf(world, inputs, operation)) {
    alone.push([await held(turns, port, one.input, 1), one]);
    alone.sort(([a], [b]) => b - a).splice(CROWDED);
  }
  const figures: Figure[] = [];
  for (const [milliseconds, { what, input }] of alone) {
    const crowd = await held(turns, port, input, AT_ONCE);
    figures.push({ operation: operation.name, milliseconds, what: `${what}, alone` });
    figures.push({ operation: operation.name, milliseconds: crowd, what: `${what}, ${AT_ONCE} at once` });
  }
  for (const { milliseconds, what } of figures)
    if (milliseconds > LIMIT_MS) console.log(`  ${operation.name}, ${what}: ${milliseconds.toFixed(0)} ms`);
  return figures.sort((a, b) => b.milliseconds - a.milliseconds)[0]!;
}

async function main(): Promise<number> {
  const folder = scratchFolder();
  const dataDir = join(folder.path, "data");
  const turns = join(folder.path, "turns");
  await fill(dataDir);
  const receivers = await openReceivers();
  await letStrangersRegister(dataDir, receivers.urls);
  const settings = { LOG_LEVEL: "fatal", SERVICE_OTS_CALENDARS: "", SERVICE_WEBHOOK_ALLOW_PRIVATE: "on" };
  const service = await startService(dataDir, { ...settings, ...probedAlone(turns) });
  const figures: Figure[] = [];
  try {
    const world = await World.build(service.url, readFileSync(join(dataDir, "operator.pem"), "utf8"));
    const inputs = new Inputs(world);
    for (const operation of inputs.operations.filter(({ name }) => name.includes(options.only))) {
      const figure = await worst(turns, Number(new URL(service.url).port), world, inputs, operation);
      figures.push(figure);
      console.log(`${figure.milliseconds.toFixed(1).padStart(7)} ms  ${figure.operation}  (${figure.what})`);
    }
  } finally {
    service.process.kill("SIGKILL");
    await receivers.close();
    folder.remove();
  }
  figures.sort((a, b) => b.milliseconds - a.milliseconds);
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ entries, atOnce: AT_ONCE, figures }, null, 2)}\n`);
  return figures.some(({ milliseconds }) => milliseconds > LIMIT_MS) ? 1 : 0;
}

process.exit(await main());
