/** A peer's process: Fastify, the client's signature, a queue whose commits form batches by themselves, and a store. */
import { setImmediate as turn } from "node:timers/promises";
import Fastify from "fastify";
import sodium from "sodium-native";
import { answerOrders } from "../front/child.js";
import type { Submission } from "../load/submissions.js";
import { openHypercore } from "./hypercore.js";
import { openPostgres } from "./postgres.js";
import { openSqlite } from "./sqlite.js";
import { Chain, type Store } from "./store.js";

const RAW_KEY_BYTES = 32;
/** Parsed keys that are kept. */
const KEYS = 10_000;
const TYPE = "application/json; charset=utf-8";
const OPENERS = { sqlite: openSqlite, postgres: openPostgres, hypercore: openHypercore };

export type Kind = keyof typeof OPENERS;

export interface Listen {
  readonly kind: Kind;
  readonly folder: string;
}

export interface Listening {
  readonly port: number;
  readonly publicKey: string;
}

const BODY = {
  type: "object",
  required: ["manifest", "public_key_pem", "signature", "attestation_type"],
  properties: {
    manifest: { type: "object" },
    public_key_pem: { type: "string", maxLength: 10_000 },
    signature: { type: "string", maxLength: 1_000 },
    attestation_type: { type: "string", maxLength: 100 },
  },
};

const keys = new Map<string, Buffer>();

function rawKey(pem: string): Buffer {
  const known = keys.get(pem);
  if (known) return known;
  if (keys.size >= KEYS) keys.clear();
  const raw = Buffer.from(pem.replace(/-----[^-]+-----/g, ""), "base64").subarray(-RAW_KEY_BYTES);
  keys.set(pem, raw);
  return raw;
}

function isSigned({ manifest, public_key_pem, signature }: Submission): boolean {
  const [bytes, key] = [Buffer.from(signature, "base64"), rawKey(public_key_pem)];
  if (bytes.length !== sodium.crypto_sign_BYTES || key.length !== RAW_KEY_BYTES) return false;
  return sodium.crypto_sign_verify_detached(bytes, Buffer.from(JSON.stringify(manifest)), key) === true;
}

/** Requests that come while the last commit runs share the next. A commit that fails ends the process. */
class Queue {
  readonly #store: Store;
  readonly #chain = new Chain();
  #waiting: { readonly submission: Submission; readonly answer: (receipt: string) => void }[] = [];
  #runs = false;

  constructor(store: Store) {
    this.#store = store;
  }

  add(submission: Submission): Promise<string> {
    return new Promise((answer) => {
      this.#waiting.push({ submission, answer });
      if (!this.#runs) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#runs = true;
    while (this.#waiting.length > 0) {
      // What the sockets already hold is read first.
      await turn();
      const batch = this.#waiting;
      this.#waiting = [];
      const receipts = await this.#store.append(batch.map(({ submission }) => this.#chain.add(submission)));
      for (const [i, { answer }] of batch.entries()) answer(receipts[i]!);
      await turn();
    }
    this.#runs = false;
  }
}

let opened: { readonly close: () => Promise<void> } | null = null;

async function listen({ kind, folder }: Listen): Promise<Listening> {
  const store = await OPENERS[kind](folder);
  const queue = new Queue(store);
  const app = Fastify({ forceCloseConnections: true });
  app.post<{ Body: Submission }>("/api/v1/attestations", { schema: { body: BODY } }, async ({ body }, reply) => {
    reply.type(TYPE);
    return isSigned(body) ? queue.add(body) : reply.code(422).send('{"error":"the signature does not hold"}');
  });
  app.get<{ Params: { index: string } }>("/api/v1/log/proof/:index", async ({ params }, reply) => {
    reply.type(TYPE);
    return (await store.proof(Number(params.index))) ?? reply.code(404).send('{"error":"there is no such entry"}');
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  opened = {
    async close() {
      await app.close();
      await store.close();
    },
  };
  return { port: Number(new URL(url).port), publicKey: store.publicKey };
}

async function close(): Promise<null> {
  await opened?.close();
  return null;
}

if (process.argv[1] === import.meta.filename)
  answerOrders((order: Listen | "close") => (order === "close" ? close() : listen(order)));
