/** Keys with sessions, and something of everything that requests can be about, so that inputs reach deep code. */
import { randomUUID } from "node:crypto";
import { Connection, WrongAnswer } from "../crash/connection.js";
import { Ledger } from "../crash/ledger.js";
import { operatorSigner } from "../crash/load.js";
import type { Random } from "../reliability/random.js";
import type { Document } from "../server/promised.js";
import { canonical, newManifest, newSigner, registration, submission, type TestSigner } from "../server/signers.js";
import { newRecipient, seal } from "../verify/ecies.js";
import type { Hints } from "./schema.js";

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
    for (const algorithm of ["ed25519", "ed25519", "ecdsa-p256"] as const) {
      const signer = newSigner(algorithm);
      await service.send("/keys/register", registration(signer));
      world.actors.push({ signer, token: await service.login(signer) });
    }
    world.operatorToken = await service.login(operatorSigner(operatorPem));
    await world.#populate();
    return world;
  }

  /** A signed challenge of an actor. Where a request has ended its key, another actor takes its place. */
  async proof(actor: Actor): Promise<object> {
    try {
      return await this.service.proof(actor.signer);
    } catch (error) {
      if (!(error instanceof WrongAnswer)) throw error;
      const signer = newSigner();
      await this.service.send("/keys/register", registration(signer));
      const place = this.actors.indexOf(actor);
      if (place >= 0) this.actors[place] = { signer, token: await this.service.login(signer) };
      return {};
    }
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
    const account = { display_name: "Alice", email: "a@example.org", credential_type: "hardware", device_label: "a" };
    await service.send("/users", { ...account, key_fingerprint: endorser_fingerprint }, { status: 201 });
    const { payload } = seal({ a: 1 }, recipient.point);
    this.#claim = await service.send("/claims", { payload }, { token: alice.token });
    const hook = { url: "https://example.org/hook", events: ["key.revoked"], key_fingerprint: endorsed_fingerprint };
    this.#webhook = (await service.send("/webhooks", hook, { token: alice.token })).id;
  }

  /** What members and parameters of a name may hold so that the request goes far. */
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
      category_weights: [{ "x-service:human_attestation": 0.5 }],
      external_identifiers: [[{ type: "orcid", value: "0000-0002-1825-0097" }]],
      url: ["https://example.org/hook"],
      format: ["json", "csv"],
      attestation_type: ["authorship", "https://example.org/reviewed/v1"],
    };
    return values[name]?.filter((value) => value !== undefined);
  };

  /** Bodies that only a signer can make, by path; undefined for those that a schema is enough for. */
  async valid(path: string, random: Random): Promise<unknown> {
    const actor = random.pick(this.actors);
    const { signer } = actor;
    switch (path) {
      case "/api/v1/attestations":
        return submission(
          signer,
          random.chance(0.5) ? newManifest() : ({ ...newManifest(), extra: { n: 1 } } as never),
        );
      case "/api/v1/documents/sign":
        return {
          title: "A",
          content_hash: newManifest().document.content_hash,
          public_key_pem: signer.publicKey,
          tags: ["a"],
        };
      case "/api/v1/verify": {
        const manifest = newManifest();
        return { manifest, source_hash: manifest.document.content_hash, trust_config: { minimum_threshold: 0.5 } };
      }
      case "/api/v1/keys/register":
        return registration(newSigner(random.pick(["ed25519", "ecdsa-p256"])));
      case "/api/v1/keys/succeed": {
        const next = newSigner();
        const payload = { old_fingerprint: signer.fingerprint, new_public_key: "", new_algorithm: next.algorithm };
        return { payload: { ...payload, new_key_signature: next.sign("service.key.succession.v1:") } };
      }
      case "/api/v1/claims":
        return { payload: seal({ a: random.below(9) }, recipient.point).payload };
      case "/api/v1/auth/login":
      case "/api/v1/auth/password":
        return { ...(await this.proof(actor)), password: "correct horse" };
      case "/api/v1/credentials/enroll": {
        const proof = await this.proof(actor);
        const chain = { action: "service.credential.enroll.v1", key_fingerprint: signer.fingerprint };
        const credential = {
          credential_type: "hardware",
          device_label: "a",
          chain_signature: signer.sign(canonical(chain)),
        };
        return {
          ...credential,
          key_fingerprint: signer.fingerprint,
          issuing_fingerprint: this.actors[0]!.signer.fingerprint,
          ...proof,
        };
      }
      default:
        return undefined;
    }
  }
}
