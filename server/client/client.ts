/**
 * The client: one service, and, where there is a signer, one key. It believes nothing that it can check: every receipt is
 * verified on arrival against the operator key and the last head that was seen.
 */
import type { Manifest } from "../../engine/verify/index.js";
import { Health as HealthSchema } from "../wire/health.js";
import { VerificationResult as VerificationResultSchema } from "../wire/signing/verification.js";
import { Http } from "./http.js";
import { AccountsClient } from "./identity/accounts.js";
import { KeysClient } from "./identity/keys.js";
import { AnchoringClient } from "./log/anchoring.js";
import { AuditClient } from "./log/audit.js";
import { LogReader } from "./log/log.js";
import { Watch } from "./log/watch.js";
import { Authority } from "./session.js";
import type { Signer } from "./signer.js";
import {
  AttestationsClient,
  type Attested,
  type AttestedDocument,
  type AttestOptions,
} from "./signing/attestations.js";
import { ClaimsClient } from "./signing/claims.js";
import { DocumentsClient } from "./signing/documents.js";
import { EndorsementsClient } from "./signing/endorsements.js";
import { PoliciesClient } from "./signing/policies.js";
import { InboxClient, RequestsClient } from "./signing/requests.js";
import { TrustClient } from "./signing/trust.js";
import { memoryStore, type Store } from "./store.js";
import type { Health, PasswordSet, Session, VerificationResult, VerifyManifest } from "./types.js";
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
  readonly #authority: Authority;
  readonly #attestations: AttestationsClient;

  /** Use `createClient`. */
  constructor({ server, operatorKey, signer, store = memoryStore(), session, fetch: fetcher = fetch }: ClientOptions) {
    this.#http = new Http(server, fetcher);
    const watch = new Watch(this.#http, store, operatorKey);
    this.#authority = new Authority(this.#http, signer, session);
    const [http, authority] = [this.#http, this.#authority];
    this.#attestations = new AttestationsClient(http, watch, authority);
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
   * same type and statement gives the first receipt again (`duplicate`). What is signed names type and statement, but for a
   * manifest with attestations in it, whose signatures cover it as it is.
   * @throws ClientError `log-misbehaved` for a receipt that does not hold
   */
  attest(subject: AttestedDocument | Manifest, options: AttestOptions = {}): Promise<Attested> {
    return this.#attestations.attest(subject, options);
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
}
