/**
 * Mixed load on every route that writes, until the service has ended: the clients, and the frequency of each action.
 */
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import type { Random } from "../reliability/random.js";
import type { TestSigner } from "../server/signers.js";
import { ACTIONS, type Actor, openAccount, register, type Scene, type Work } from "./actions.js";
import { type Connection, CutOff } from "./connection.js";

export type { Scene } from "./actions.js";

/** The service's key, from the operator's key file. */
export function operatorSigner(pem: string): TestSigner {
  const privateKey = createPrivateKey(pem);
  const publicKey = createPublicKey(privateKey);
  const spki = publicKey.export({ type: "spki", format: "der" });
  return {
    algorithm: "ed25519",
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
    privateKey: pem,
    fingerprint: `sha256:${createHash("sha256").update(spki).digest("hex")}`,
    sign: (message) => sign(null, Buffer.from(message as string), privateKey).toString("base64"),
  };
}

/** Relative frequency of each action. Passwords and accounts are rare, because they cost a slow hash. */
const WEIGHTS: Readonly<Record<string, number>> = {
  attest: 12,
  attestByNewKey: 4,
  attestAgain: 5,
  attestTwiceAtOnce: 3,
  attestWrongly: 3,
  request: 6,
  claim: 3,
  withhold: 4,
};

const CHOICES = Object.keys(ACTIONS).flatMap((name) => Array<string>(WEIGHTS[name] ?? 2).fill(name));

/** Pairs of actors that continue over several rounds, so that sessions and inboxes also outlive crashes. */
export class Crew {
  readonly #scene: Scene;
  readonly #pairs: (readonly [Actor, Actor] | undefined)[];
  /** Number of completed calls of each action. */
  readonly done = new Map<string, number>();

  constructor(scene: Scene, workers: number) {
    this.#scene = scene;
    this.#pairs = Array.from({ length: workers }, () => undefined);
  }

  /** Replaces the actors, before inboxes are full and sessions end. */
  renew(): void {
    this.#pairs.fill(undefined);
  }

  /** Works until the service is cut off. @throws the error that a worker found */
  async work(service: Connection, random: Random): Promise<void> {
    await Promise.all(this.#pairs.map((_, worker) => this.#workAlone(worker, service, random.fork())));
  }

  async #workAlone(worker: number, service: Connection, random: Random): Promise<void> {
    const scene = this.#scene;
    const { ledger } = scene;
    try {
      this.#pairs[worker] ??= [await newActor({ ledger, service }, "hardware"), await newActor({ ledger, service })];
      const [alice, bob] = this.#pairs[worker]!;
      for (;;) {
        const name = random.pick(CHOICES);
        await ACTIONS[name]!({ scene, ledger, service, random, alice, bob });
        this.done.set(name, (this.done.get(name) ?? 0) + 1);
      }
    } catch (error) {
      if (!(error instanceof CutOff)) throw error;
    }
  }
}

async function newActor(work: Pick<Work, "ledger" | "service">, credential?: string): Promise<Actor> {
  const signer = await register(work);
  if (credential) await openAccount(work, signer, credential);
  return { signer, token: await work.service.login(signer) };
}

/** The standing subscription, by a key of its own. */
export async function subscribeTo({ ledger, watched, hookUrl }: Scene, service: Connection): Promise<void> {
  await register({ ledger, service }, watched);
  const token = await service.login(watched);
  const body = { url: hookUrl, events: ["attestation.created"], key_fingerprint: watched.fingerprint };
  const { id } = await service.send("/webhooks", body, { token });
  ledger.holds("webhooks", id, { url: hookUrl });
  ledger.webhook = id;
}

/** The state of the standing subscription, for people. */
export async function subscriptionOf({ ledger, watched }: Scene, service: Connection): Promise<string> {
  const token = await service.login(watched);
  const all: { id: number }[] = await service.send("/webhooks", null, { token, method: "GET" });
  return JSON.stringify(all.find(({ id }) => id === ledger.webhook));
}
