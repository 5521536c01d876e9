/** Keys with sessions, and one example of everything that requests can name, so that inputs reach deep code. */
import { randomUUID } from "node:crypto";
import { Connection, WrongAnswer } from "../crash/connection.js";
import { Ledger } from "../crash/ledger.js";
import { operatorSigner } from "../crash/load.js";
import type { Random } from "../reliability/random.js";
import type { Document } from "../server/promised.js";
import {
  type Algorithm,
  newManifest,
  newSigner,
  registration,
  submission,
  type TestSigner,
} from "../server/signers.js";
import { newRecipient, seal } from "../verify/claims/ecies.js";
import { SCENES, type Valid } from "./scenes.js";
import type { Hints } from "./schema.js";

const TILE_WIDTH = 256;
const AT_ONCE = 32;

export interface Actor {
  readonly signer: TestSigner;
  readonly token: string;
}

const recipient = newRecipient();

export class World {
  readonly service: Connection;
  readonly document: Document;
  readonly actors: Actor[] = [];
  operatorToken = "";
  #offer: unknown;
  #request: unknown;
  #attestation: unknown;
  #claim: { entry_id: number; lookup_key: string } | undefined;
  #webhook: unknown;

  private constructor(service: Connection, document: Document) {
    this.service = service;
    this.document = document;
  }

  static async build(url: string, operatorPem: string): Promise<World> {
    const service = new Connection(url, new Ledger());
    const world = new World(service, await service.send("/openapi.json", null, { method: "GET" }));
    for (const algorithm of ["ed25519", "ed25519", "ecdsa-p256"] as const)
      world.actors.push(await world.#newActor(algorithm));
    world.operatorToken = await service.login(operatorSigner(operatorPem));
    await world.#populate();
    return world;
  }

  /** A signed challenge of an actor. If a request has ended its key, another actor takes its place. */
  async proof(actor: Actor): Promise<object> {
    try {
      return await this.service.proof(actor.signer);
    } catch (error) {
      if (!(error instanceof WrongAnswer)) throw error;
      const place = this.actors.indexOf(actor);
      if (place >= 0) this.actors[place] = await this.#newActor(actor.signer.algorithm);
      return {};
    }
  }

  /** A new registered key. */
  async register(algorithm: Algorithm = "ed25519"): Promise<TestSigner> {
    const signer = newSigner(algorithm);
    await this.service.send("/keys/register", registration(signer));
    return signer;
  }

  /** An actor whose key is declared as hardware, as claims and enrolments require. */
  async #newActor(algorithm: Algorithm): Promise<Actor> {
    const signer = await this.register(algorithm);
    const account = { display_name: `Actor ${randomUUID()}`, email: "a@example.org", device_label: "a" };
    const credential = { credential_type: "hardware", key_fingerprint: signer.fingerprint };
    await this.service.send("/users", { ...account, ...credential }, { status: 201 });
    return { signer, token: await this.service.login(signer) };
  }

  async #populate(): Promise<void> {
    const { service } = this;
    const [alice, bob] = this.actors as [Actor, Actor];
    const [endorser_fingerprint, endorsed_fingerprint] = [alice.signer.fingerprint, bob.signer.fingerprint];
    const category = "x-service:human_attestation";
    const offer = { endorser_fingerprint, endorsed_fingerprint, category, auth: await service.proof(alice.signer) };
    this.#offer = (await service.send("/endorsements/offer", offer)).id;
    this.#attestation = (await service.send("/attestations", submission(alice.signer))).attestation.id;
    const request = { target_fingerprint: endorsed_fingerprint, attestation_type: "authorship", nonce: randomUUID() };
    this.#request = (await service.send("/log/attestation-requests", request, { token: alice.token })).request_id;
    const { payload } = seal({ a: 1 }, recipient.point);
    this.#claim = await service.send("/claims", { payload }, { token: alice.token });
    const hook = { url: "https://example.org/hook", events: ["key.revoked"], key_fingerprint: endorsed_fingerprint };
    this.#webhook = (await service.send("/webhooks", hook, { token: alice.token })).id;
    // Enough entries for a full tile.
    const attest = () => service.send("/attestations", submission(bob.signer));
    for (let n = 0; n < TILE_WIDTH; n += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, attest));
  }

  /** Values by name of member or parameter that get a request far. */
  readonly hints: Hints = (name) => {
    if (/fingerprint$/.test(name) || name === "requester" || name === "target")
      return this.actors.map(({ signer }) => signer.fingerprint);
    const { publicKey } = this.actors[0]!.signer;
    const values: Readonly<Record<string, readonly unknown[] | undefined>> = {
      offer_entry_id: [this.#offer, 1],
      original_offer_entry_id: [this.#offer, 1],
      request_id: [this.#request],
      attestation_id: [this.#attestation],
      entry_id: [this.#claim?.entry_id, 1],
      lookup_key: [this.#claim?.lookup_key],
      webhook_id: [this.#webhook],
      public_key: [publicKey],
      new_public_key: [publicKey],
      public_key_pem: [publicKey],
      content_hash: [newManifest().document.content_hash],
      source_hash: ["ab".repeat(32)],
      document_hash: ["ab".repeat(32)],
      pseudonym: ["Alice", "Zoë"],
      email: ["a@example.org"],
      default_action_on_failure: ["allow", "hold", "decline"],
      predicates: [{ all: [{ field: "attestation_type", op: "eq", value: "authorship" }] }, { not: { any: [] } }],
      valid_until: ["2099-01-01", "2099-01-01T00:00:00Z"],
      deadline: [new Date(Date.now() + 86_400_000).toJSON()],
      effective_from: [new Date(Date.now() + 86_400_000).toJSON()],
      since: ["2020-01-01"],
      until: ["2099-01-01"],
      start_date: ["2020-01-01"],
      end_date: ["2099-01-01"],
      tree_size: [1, 2, 5],
      from: [1, 2],
      to: [2, 5],
      leaf_index: [0, 1],
      level: [0, 1],
      index: [0],
      index_p: ["0.p"],
      width: [1, 255],
      category_weights: [{ "x-service:human_attestation": 0.5 }],
      external_identifiers: [[{ type: "orcid", value: "0000-0002-1825-0097" }]],
      url: ["https://example.org/hook"],
      format: ["json", "csv"],
      attestation_type: ["authorship", "https://example.org/reviewed/v1"],
    };
    return values[name]?.filter((value) => value !== undefined);
  };

  /** The parts of a valid request that a schema cannot describe; undefined if the schema is enough. */
  async valid(operation: string, random: Random): Promise<Valid | undefined> {
    const actor = random.pick(this.actors);
    try {
      return await SCENES[operation]?.(this, actor, random);
    } catch (error) {
      if (!(error instanceof WrongAnswer)) throw error;
      // Earlier requests may have ended its key, or used up its quota.
      for (const one of this.actors) await this.proof(one);
      return undefined;
    }
  }
}
