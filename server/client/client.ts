/**
 * The client of one service, with the key of a signer if there is one. It trusts nothing that it can check. Every
 * receipt is verified on arrival against the operator key and the last seen head.
 */
import { Health as HealthSchema, WritersRule } from "../../engine/contract/service/health.js";
import { VerificationResult as VerificationResultSchema } from "../../engine/contract/signing/verification.js";
import type { Manifest } from "../../engine/verify/index.js";
import { Http } from "./base/http.js";
import { Authority } from "./base/session.js";
import type { Signer } from "./base/signer.js";
import { memoryStore, type Store } from "./base/store.js";
import type { Health, PasswordSet, Session, VerificationResult, VerifyManifest, Writers } from "./base/types.js";
import { AccountsClient } from "./identity/accounts.js";
import { KeysClient } from "./identity/keys.js";
import { AnchoringClient } from "./log/anchoring.js";
import { AuditClient } from "./log/audit.js";
import { LogReader } from "./log/log.js";
import { ShardsClient } from "./log/shards.js";
import { TlogReader } from "./log/tlog.js";
import { Watch } from "./log/watch.js";
import { WithholdingClient } from "./log/withholding.js";
import {
  AttestationsClient,
  type AttestedDocument,
  type AttestOptions,
  type AttestOutcome,
  type Subject,
} from "./signing/attestations.js";
import { ClaimsClient } from "./signing/claims.js";
import { DocumentsClient } from "./signing/documents.js";
import { EndorsementsClient } from "./signing/endorsements.js";
import type { Attested } from "./signing/receipts.js";
import { InboxClient, PoliciesClient, RequestsClient } from "./signing/requests.js";
import { TrustClient } from "./signing/trust.js";
import { WebhooksClient } from "./webhooks.js";

export interface ClientOptions {
  /**
   * Base address, e.g. `http://127.0.0.1:8080`. Where several nodes keep the log, the addresses of all of them: the first one
   * is asked first, and the client goes on at the node that writes, if it is one of these.
   */
  readonly server: string | readonly string[];
  /**
   * The origin by which the service is known, e.g. `https://log.example`, if a tunnel or a proxy gives it another address
   * here. Only challenges of this origin are signed. By default it is that of `server`.
   */
  readonly publicOrigin?: string | undefined;
  /**
   * PEM of the operator key. If absent, the key in the store is trusted, or else the first key that the service shows.
   */
  readonly operatorKey?: string | undefined;
  /** Required for everything that needs a signature. */
  readonly signer?: Signer | undefined;
  /** Keeps the operator key and the newest head. By default, they last as long as the client. */
  readonly store?: Store | undefined;
  /** A session to continue. */
  readonly session?: Session | undefined;
  /** Milliseconds for which nodes that are behind what was seen are asked again; 30,000 if absent. */
  readonly patience?: number | undefined;
  /** Default: the global one. */
  readonly fetch?: typeof fetch | undefined;
}

/** @throws TypeError for an invalid address; CairnlogError `invalid-key` */
export function createClient(options: ClientOptions): Client {
  return new Client(options);
}

export class Client {
  readonly log: LogReader;
  readonly tlog: TlogReader;
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
  readonly shards: ShardsClient;
  readonly withholding: WithholdingClient;
  readonly #http: Http;
  readonly #authority: Authority;
  readonly #attestations: AttestationsClient;

  /** Use `createClient`. */
  constructor(options: ClientOptions) {
    const {
      server,
      publicOrigin,
      operatorKey,
      signer,
      session,
      store = memoryStore(),
      fetch: fetcher = fetch,
      patience,
    } = options;
    this.#http = new Http(server, fetcher, publicOrigin, patience);
    const watch = new Watch(this.#http, store, operatorKey);
    // Nothing is signed for, or given to, a log of another operator than the pinned one.
    this.#http.checkFirst(() => watch.refreshedOperators());
    this.#authority = new Authority(this.#http, signer, session);
    const shared = [this.#http, watch, this.#authority] as const;
    this.#attestations = new AttestationsClient(...shared);
    this.log = new LogReader(...shared);
    this.tlog = new TlogReader(this.#http, this.log);
    this.keys = new KeysClient(...shared);
    this.endorsements = new EndorsementsClient(...shared);
    this.requests = new RequestsClient(...shared);
    this.inbox = new InboxClient(...shared);
    this.policies = new PoliciesClient(...shared);
    this.trust = new TrustClient(...shared);
    this.claims = new ClaimsClient(...shared);
    this.accounts = new AccountsClient(...shared);
    this.documents = new DocumentsClient(...shared);
    this.webhooks = new WebhooksClient(...shared);
    this.audit = new AuditClient(...shared);
    this.anchoring = new AnchoringClient(...shared);
    this.shards = new ShardsClient(...shared);
    this.withholding = new WithholdingClient(...shared);
    // Whoever is told that the log has ended remembers it, if it is true.
    this.#http.onFrozen(() => this.shards.noteEnd());
  }

  /** The address that is asked first, without a slash at its end. */
  get server(): string {
    return this.#http.server;
  }

  /** The fingerprint of the signer's key; undefined without a signer. */
  get fingerprint(): string | undefined {
    return this.#authority.ownFingerprint;
  }

  /** The session as it was last renewed, which another client can continue. It is a secret. */
  get session(): Session | undefined {
    return this.#authority.session;
  }

  /**
   * Signs in with the signer's key. The session is kept, renewed, and begun again when it has ended. @throws
   * ClientError
   */
  login(password?: string): Promise<Session> {
    return this.#authority.login(password);
  }

  /**
   * Sets or changes the password of the signer's key, which signing in and attesting then require.
   * @throws ClientError
   */
  setPassword(password: string, current?: string): Promise<PasswordSet> {
    return this.#authority.setPassword(password, current);
  }

  /** The health and version of the service. @throws ClientError */
  health(): Promise<Health> {
    return this.#http.get(HealthSchema, "/health");
  }

  /** Asks the log who may write to it. @throws ClientError; `forbidden` at a mirror */
  writers(): Promise<Writers> {
    return this.#http.get(WritersRule, "/writers");
  }

  /**
   * Signs a document, or a manifest with its attestations, and has the attestation recorded. Attesting again with the
   * same type and statement returns the first receipt (`duplicate`). The signed document names type and statement. A
   * manifest that has attestations is signed unchanged, because their signatures cover it.
   * @throws ClientError `log-misbehaved` for an invalid receipt
   */
  attest(subject: AttestedDocument | Manifest, options: AttestOptions = {}): Promise<Attested> {
    return this.#attestations.attest(subject, options);
  }

  /**
   * Signs and submits many documents or manifests, up to 1000 in one request, and verifies every receipt. Yields an outcome for each,
   * in their order: receipt and bundle, or `error` if it was refused. One that is refused stops no other. Where the service's limit
   * has fewer left than a request holds, so many are sent.
   * @throws ClientError if the service refuses all that are left (`retryAfter` says for how long), or does not answer;
   *   `log-misbehaved` for an invalid receipt. What was yielded is recorded, and what was not may be sent again
   */
  attestAll<S extends Subject>(
    subjects: Iterable<S> | AsyncIterable<S>,
    options: AttestOptions = {},
  ): AsyncGenerator<AttestOutcome<S>, void, undefined> {
    return this.#attestations.attestAll(subjects, options);
  }

  /**
   * The service's verdict on a manifest. It is not a proof; `verifyBundle` of `cairnlog/verify` trusts nobody.
   * @param options `source_hash` defaults to the manifest's own content hash
   * @throws ClientError
   */
  verify(manifest: Manifest, options: Partial<Omit<VerifyManifest, "manifest">> = {}): Promise<VerificationResult> {
    const body = { source_hash: manifest.document.content_hash, ...options, manifest };
    return this.#http.post(VerificationResultSchema, "/verify", body);
  }
}
