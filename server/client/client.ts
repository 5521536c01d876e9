/**
 * The client: one service, and, where there is a signer, one key. It believes nothing that it can check: every receipt is
 * verified on arrival against the operator key and the last head that was seen.
 */
import {
  type AttestationBundle,
  BUNDLE_FORMAT,
  type Manifest,
  signingPayload,
  type TreeHead,
  verifyBundle,
} from "../../engine/verify/index.js";
import { Health as HealthSchema } from "../wire/health.js";
import { InclusionProof } from "../wire/log/log.js";
import * as attestationWire from "../wire/signing/attestations.js";
import { VerificationResult as VerificationResultSchema } from "../wire/signing/verification.js";
import { ClientError } from "./error.js";
import { Http } from "./http.js";
import { AccountsClient } from "./identity/accounts.js";
import { KeysClient } from "./identity/keys.js";
import { AnchoringClient } from "./log/anchoring.js";
import { AuditClient } from "./log/audit.js";
import { LogReader } from "./log/log.js";
import { Watch } from "./log/watch.js";
import { Authority } from "./session.js";
import type { Signer } from "./signer.js";
import { ClaimsClient } from "./signing/claims.js";
import { DocumentsClient } from "./signing/documents.js";
import { EndorsementsClient } from "./signing/endorsements.js";
import { PoliciesClient } from "./signing/policies.js";
import { InboxClient, RequestsClient } from "./signing/requests.js";
import { TrustClient } from "./signing/trust.js";
import { memoryStore, type Store } from "./store.js";
import type {
  AttestationReceipt,
  Health,
  PasswordSet,
  Session,
  SubmitAttestation,
  VerificationResult,
  VerifyManifest,
} from "./types.js";
import { WebhooksClient } from "./webhooks.js";

export interface ClientOptions {
  /** Base address, e.g. `http://127.0.0.1:8080`. */
  readonly server: string;
  /** PEM of the operator key. Without it the one in the store, or the first one that the service shows, is believed. */
  readonly operatorKey?: string | undefined;
  /** Needed for everything that signs. */
  readonly signer?: Signer | undefined;
  /** Where operator key and newest head are remembered; default: as long as the client lives. */
  readonly store?: Store | undefined;
  /** A session to go on with. */
  readonly session?: Session | undefined;
  /** Default: the global one. */
  readonly fetch?: typeof fetch | undefined;
}

/** A document by its hash: all that the service gets of it. */
export type AttestedDocument = Manifest["document"];

export interface AttestOptions {
  /** authorship (default), editorial_review, peer_review, publication, or an `https:` predicate URL. */
  readonly type?: string | undefined;
  /** For a key that is not registered yet. */
  readonly pseudonym?: string | undefined;
  readonly intent?: string | undefined;
  /** When one is set for the key. */
  readonly password?: string | undefined;
}

/** A receipt that was checked, and all that is needed to check it again offline. */
export interface Attested {
  readonly receipt: AttestationReceipt;
  /** Contents of an `.attestation.json` file. */
  readonly bundle: AttestationBundle;
}

/** @throws TypeError for an address that is none; CairnlogError `invalid-key` */
export function createClient(options: ClientOptions): Client {
  return new Client(options);
}

export class Client {
  readonly log: LogReader;
  readonly keys: KeysClient;
  readonly endorsements: EndorsementsClient;
  readonly requests: RequestsClient;
  readonly inbox: InboxClient;
  readonly policies: PoliciesClient;
  readonly trust: TrustClient;
  readonly claims: ClaimsClient;
  readonly accounts: AccountsClient;
  readonly documents: DocumentsClient;
  readonly webhooks: WebhooksClient;
  readonly audit: AuditClient;
  readonly anchoring: AnchoringClient;
  readonly #http: Http;
  readonly #watch: Watch;
  readonly #authority: Authority;

  /** Use `createClient`. */
  constructor({ server, operatorKey, signer, store = memoryStore(), session, fetch: fetcher = fetch }: ClientOptions) {
    this.#http = new Http(server, fetcher);
    this.#watch = new Watch(this.#http, store, operatorKey);
    this.#authority = new Authority(this.#http, signer, session);
    const [http, watch, authority] = [this.#http, this.#watch, this.#authority];
    this.log = new LogReader(http, watch);
    this.keys = new KeysClient(http, watch, authority);
    this.endorsements = new EndorsementsClient(http, watch, authority);
    this.requests = new RequestsClient(http, watch, authority);
    this.inbox = new InboxClient(http, authority);
    this.policies = new PoliciesClient(http, watch, authority);
    this.trust = new TrustClient(http, authority);
    this.claims = new ClaimsClient(http, watch, authority);
    this.accounts = new AccountsClient(http, authority);
    this.documents = new DocumentsClient(http, authority);
    this.webhooks = new WebhooksClient(http, authority);
    this.audit = new AuditClient(http, watch);
    this.anchoring = new AnchoringClient(http, watch, authority);
  }

  /** The session as it was last renewed, to be kept for another client; a secret. */
  get session(): Session | undefined {
    return this.#authority.session;
  }

  /** Signs in with the signer's key. The session is kept, renewed and, where it ended, begun anew. @throws ClientError */
  login(password?: string): Promise<Session> {
    return this.#authority.login(password);
  }

  /** Sets the password that signing in and attesting with the signer's key take, or changes it. @throws ClientError */
  setPassword(password: string, current?: string): Promise<PasswordSet> {
    return this.#authority.setPassword(password, current);
  }

  /** Whether the service is there, and which version it is. @throws ClientError */
  health(): Promise<Health> {
    return this.#http.get(HealthSchema, "/health");
  }

  /**
   * Signs a document, or a manifest with the attestations that are in it, and has that recorded. A second time with the
   * same type gives the first receipt again (`duplicate`).
   * @throws ClientError `log-misbehaved` for a receipt that does not hold
   */
  async attest(subject: AttestedDocument | Manifest, options: AttestOptions = {}): Promise<Attested> {
    const manifest = isManifest(subject) ? subject : { document: subject, attestations: [] };
    const submitted = await this.#submission(manifest, options);
    const floor = await this.#watch.floor();
    const receipt = await this.#http.post(attestationWire.AttestationReceipt, "/attestations", submitted);
    const bundle = await this.#bundle(manifest, receipt, floor);
    await this.#checkReceipt(receipt, submitted, bundle, floor);
    return { receipt, bundle };
  }

  /**
   * What the service finds of a manifest. This is its word, not a proof: `verifyBundle` of `cairnlog/verify` needs nobody's.
   * @param options `source_hash` defaults to the manifest's own content hash
   * @throws ClientError
   */
  verify(manifest: Manifest, options: Partial<Omit<VerifyManifest, "manifest">> = {}): Promise<VerificationResult> {
    const body = { source_hash: manifest.document.content_hash, ...options, manifest };
    return this.#http.post(VerificationResultSchema, "/verify", body);
  }

  async #submission(manifest: Manifest, options: AttestOptions): Promise<SubmitAttestation> {
    const { type = "authorship", pseudonym, intent, password } = options;
    return {
      manifest: manifest as unknown as SubmitAttestation["manifest"],
      public_key_pem: this.#authority.key.pem,
      signature: await this.#authority.sign(signingPayload(manifest)),
      attestation_type: type,
      ...(pseudonym === undefined ? {} : { pseudonym }),
      ...(intent === undefined ? {} : { intent_statement: intent }),
      ...(password === undefined ? {} : { password }),
    };
  }

  async #bundle(manifest: Manifest, receipt: AttestationReceipt, floor: number): Promise<AttestationBundle> {
    const { log_entry_id, leaf_index, attestation, duplicate } = receipt;
    // An attestation of an imported history may be older than the first head.
    const head = (receipt.sth ?? (await this.#watch.newest())) as TreeHead | undefined;
    if (!head) throw await this.#watch.misbehaved("The log gave a receipt and has no tree head.", {});
    // What was recorded before lies under the head that was made then.
    await this.#watch.accept(head, duplicate ? 0 : floor);
    const query = { tree_size: head.tree_size };
    const [entry, proof] = await this.#watch.owed(
      Promise.all([this.#watch.entry(log_entry_id), this.#http.get(InclusionProof, `/log/proof/${leaf_index}`, query)]),
      { shown: head },
    );
    if (entry.chain_version !== 2)
      throw new ClientError(
        "unverifiable-receipt",
        `Entry ${entry.id} records the same attestation, in version 1, which no receipt covers.`,
      );
    // The anchoring proof is added to an entry later and is no part of the receipt.
    const { ots_proof: _, ...bare } = entry;
    return {
      format: BUNDLE_FORMAT,
      manifest,
      attestation: attestation as AttestationBundle["attestation"],
      public_key: this.#authority.key.pem,
      entry: bare,
      proof: proof as AttestationBundle["proof"],
      tree_head: head,
    };
  }

  async #checkReceipt(
    receipt: AttestationReceipt,
    submitted: SubmitAttestation,
    bundle: AttestationBundle,
    floor: number,
  ): Promise<void> {
    const { proof, entry, tree_head: shown } = bundle;
    const { duplicate, attestation } = receipt;
    const operatorKey = await this.#watch.operatorKey();
    const { checks } = await verifyBundle(bundle, { fileHash: submitted.manifest.document.content_hash, operatorKey });
    const wrong = checks.filter((check) => !check.ok).map((check) => check.detail);
    // A signature does not cover the type and the statement, so the log could record others than were submitted.
    if (attestation.type !== submitted.attestation_type) wrong.push("The attestation is of another type.");
    if (receipt.leaf_index !== proof.leaf_index) wrong.push("The proof is of another leaf than the receipt.");
    if (!duplicate) {
      if (attestation.signature !== submitted.signature) wrong.push("The signature is not the one that was submitted.");
      if ((attestation.intent_statement ?? null) !== (submitted.intent_statement ?? null))
        wrong.push("The statement of intent is not the one that was submitted.");
      if (receipt.leaf_index < floor) wrong.push("The entry is older than the receipt.");
    }
    if (wrong.length === 0) return;
    const detail = `The service gave a receipt that does not verify: ${wrong.join(" ")}`;
    throw await this.#watch.misbehaved(detail, { shown, proof, entry });
  }
}

function isManifest(subject: AttestedDocument | Manifest): subject is Manifest {
  return Array.isArray(subject.attestations) && typeof subject.document === "object";
}
