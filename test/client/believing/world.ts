/** A service with data of every kind, and the clients that made it. */
import { randomUUID } from "node:crypto";
import { encryptClaim } from "#cairnlog/engine/verify/claims/claims.js";
import { parsePublicKey } from "#cairnlog/engine/verify/index.js";
import { type Client, createClient, type Signer } from "#cairnlog/server/client/index.js";
import { startCalendar } from "../../anchoring/calendar.js";
import { startTestService, type TestService, temporaryFolder } from "../../server/harness.js";
import { newManifest, newSigner, sha256 } from "../../server/signers.js";
import { asSigner, newClient, operatorSigner } from "../clients.js";

export type Somebody = { readonly client: Client; readonly signer: Signer; readonly fingerprint: string };

export const HUMAN = "x-service:human_attestation" as const;
export const INSTITUTIONAL = "x-service:institutional_endorsement" as const;
/** An offer with all optional members. */
export const OFFER = {
  category: INSTITUTIONAL,
  valid_until: "2099-12-31",
  institutional_metadata: { name: "The Academy" },
  external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
};
export const POLICY = {
  predicates: { field: "attestation_type", op: "eq", value: "authorship" },
  default_action_on_failure: "decline",
};
/** Number of entries before all others: enough for a full tile. */
export const FILLING = 260;
const FAR = "2099-01-01T00:00:00.000000Z";

export class World {
  readonly service: TestService;
  readonly ada: Somebody;
  readonly bob: Somebody;
  /** Declares that his key is in hardware. */
  readonly holder: Somebody;
  readonly operator: Client;
  readonly operatorSigner: Signer;
  readonly lookupKey = sha256(randomUUID());
  readonly claim: ReturnType<typeof encryptClaim>;
  readonly document = newManifest().document;
  requestId = "";
  claimId = 0;
  accountName = "";
  vkey = "";
  /** `entry_hash` of the sixth entry. */
  sixthHash = "";

  private constructor(service: TestService, dataDir: string) {
    this.service = service;
    [this.ada, this.bob, this.holder] = [this.somebody(), this.somebody(), this.somebody()];
    this.operatorSigner = operatorSigner(dataDir);
    this.operator = createClient({ server: service.url, signer: this.operatorSigner });
    this.claim = this.newClaim();
  }

  static async begin(): Promise<World> {
    const dataDir = temporaryFolder();
    const calendar = await startCalendar();
    const service = await startTestService({
      SERVICE_DATA_DIR: dataDir,
      SERVICE_CHECKPOINT_INTERVAL_S: "1",
      SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
      SERVICE_ENDORSEMENT_MIN_TRUST: "0",
      SERVICE_OTS_CALENDARS: calendar.url,
    });
    const world = new World(service, dataDir);
    await world.#happen();
    world.vkey = await world.operator.tlog.vkey();
    // Until the newest checkpoint covers all of it.
    await service.checkpointed(service.server.registry.log.size);
    world.sixthHash = service.server.registry.log.entryAt(5)!.entry_hash;
    return world;
  }

  /** A client with a new key that is not registered. */
  somebody(): Somebody {
    const { client, signer, fingerprint } = newClient(this.service.url);
    return { client, signer: asSigner(signer), fingerprint };
  }

  async registered(pseudonym = "Eve"): Promise<Somebody> {
    const made = this.somebody();
    await made.client.keys.register({ pseudonym });
    return made;
  }

  newClaim() {
    const recipient = parsePublicKey(newSigner("ecdsa-p256").publicKey);
    return encryptClaim({ salary: 52_000 }, { recipient, lookupKey: this.lookupKey });
  }

  /** Opens an account for a client. @returns the request */
  async account({ client }: Somebody) {
    const account = {
      display_name: `Ada ${randomUUID()}`,
      email: "ada@example.org",
      credential_type: "hardware" as const,
      device_label: "a token",
    };
    return { account, opened: await client.accounts.open(account) };
  }

  async #happen(): Promise<void> {
    const { ada, bob, holder } = this;
    const event_type = "encrypted_claim";
    const empty = {
      commitment_alg: "",
      ephemeral_public_key: "",
      nonce: "",
      ciphertext: "",
      commitment: "",
      lookup_key: "",
    };
    const filling = Array.from({ length: FILLING }, () => ({ event_type, payload: { event_type, ...empty } }));
    await this.service.server.registry.log.append(filling);
    await ada.client.keys.register({ pseudonym: "Ada", expirationDate: FAR });
    await bob.client.keys.register({ pseudonym: "Adam" });
    await holder.client.keys.register({ pseudonym: "Holder" });
    this.accountName = (await this.account(holder)).account.display_name;
    await ada.client.attest({ ...this.document, tags: ["draft", "old"] }, { intent: "I wrote it." });
    await ada.client.attest(this.document, { type: "publication" });

    const { entry } = await ada.client.endorsements.offer({ endorsed_fingerprint: bob.fingerprint, category: HUMAN });
    await bob.client.endorsements.accept(entry.id, "thanks");
    await ada.client.endorsements.offer({ ...OFFER, endorsed_fingerprint: bob.fingerprint });
    await bob.client.endorsements.offer({ ...OFFER, endorsed_fingerprint: ada.fingerprint });
    await ada.client.endorsements.alert(bob.fingerprint, "the laptop was stolen", "a police report");
    await ada.client.endorsements.alert(bob.fingerprint, "and the telephone");

    const ask = { target_fingerprint: bob.fingerprint, attestation_type: "authorship", claims: { pages: 12 } };
    const asked = await ada.client.requests.create({ ...ask, intent_statement: "for the journal" });
    await ada.client.requests.create(ask);
    this.requestId = asked.request_id;
    const given = await bob.client.attest(this.document, { type: "peer_review" });
    const answer = { attestation_id: given.receipt.attestation.id, reason: "gladly" };
    await bob.client.requests.respond(asked.request_id, { decision: "accept", ...answer });
    await bob.client.policies.publish(POLICY);
    await bob.client.policies.publish({ ...POLICY, effective_from: FAR });

    const anchors = [{ fingerprint: bob.fingerprint, weight: 0.5 }];
    await ada.client.trust.configure({ direct_signer_anchors: anchors, minimum_threshold: 0.3 });
    await ada.client.trust.configure({ endorser_anchors: anchors, minimum_threshold: 0.2, category_weights: { a: 1 } });
    await ada.client.webhooks.create({ url: "https://example.org/one", events: ["key.revoked", "key.registered"] });
    await ada.client.webhooks.create({ url: "https://example.org/two", key_fingerprint: bob.fingerprint });
    this.claimId = (await holder.client.claims.post({ ...this.claim.payload })).log_entry_id;
    await holder.client.claims.post({ ...this.newClaim().payload });
    await this.operator.anchoring.anchor();
  }
}
