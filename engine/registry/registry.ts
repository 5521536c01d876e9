/**
 * The registry: the content of the log. It has one log, the projection that interprets its events, and one object for
 * each concept. Each object has commands, which change state by appending events, and queries.
 */
import { closeAll } from "../base/closing.js";
import { CairnlogError } from "../base/error.js";
import { HardwareRoots } from "../crypto/hardware.js";
import { PasswordHasher } from "../crypto/passwords/password.js";
import { type Pool, SignatureVerifier } from "../crypto/pool/pool.js";
import type { OperatorKey } from "../crypto/signer/operator-key.js";
import type { Erasure } from "../log/history/erase.js";
import { type Log, openLog, openLogReader } from "../log/log.js";
import type { LogOptions } from "../log/start.js";
import { type Clock, systemClock } from "../log/state/clock.js";
import type { BudgetLimits, Writer } from "../log/state/executor.js";
import type { LogReader } from "../log/view/reader.js";
import type { LogWriter } from "../log/writer.js";
import { Challenges, ChallengeUses, DEFAULT_CHALLENGE_TTL_S } from "./access/challenges.js";
import { DEFAULT_PASSWORD_TRIES, PasswordRows, type PasswordService, Passwords } from "./access/passwords.js";
import { Accounts } from "./accounts/accounts.js";
import { Credentials } from "./accounts/credentials.js";
import { Attestations } from "./attestations/attestations.js";
import { Claims, DEFAULT_CLAIM_BYTES_PER_KEY, DEFAULT_CLAIM_REVEALS, type Reveal } from "./claims/claims.js";
import { Endorsements } from "./endorsements/endorsements.js";
import { DEFAULT_ACTIVATION_DELAY_S, EndorsementQueries } from "./endorsements/queries.js";
import { projection } from "./events/projection.js";
import { type GraphSettings, Graphs } from "./graph/recent-graphs.js";
import { Keys } from "./keys/keys.js";
import { KeyLifecycle } from "./keys/lifecycle.js";
import { Inbox } from "./requests/inbox.js";
import { DEFAULT_POLICY_QUOTA, Policies } from "./requests/policies.js";
import { DEFAULT_REQUEST_QUOTA, RequestQueries, Requests } from "./requests/requests.js";
import { serviceWriter } from "./service-writer.js";
import { Slices } from "./shared/slices.js";
import { DEFAULT_TRUST_CONFIG_QUOTA, TrustConfigs } from "./trust/configs.js";
import { DEFAULT_TRUST_SETTINGS, TrustService, type TrustSettings } from "./trust/service.js";
import type { GraphParts } from "./trust/view.js";
import { Verification } from "./verification/verification.js";
import { DEFAULT_WEBHOOKS_PER_ADDRESS } from "./webhooks/commands.js";
import { Webhooks } from "./webhooks/webhooks.js";
import { Writers, type WritersSettings, Writes } from "./writes/writes.js";

export interface RegistryOptions extends Erasure {
  /** Directory of the log. */
  readonly path: string;
  readonly operator: OperatorKey;
  readonly pool: Pool;
  /** Absolute `https:` URL without trailing slash, the base of the operator's predicates. */
  readonly predicateBase: string;
  /** Minimum of free bytes on the disk, below which appends are refused; 64 MiB if absent. */
  readonly minFreeBytes?: number;
  /** Name that the log takes if it is created now. */
  readonly name?: string;
  /** Seconds in which a challenge must be answered; 300 if absent. */
  readonly challengeTtlSeconds?: number;
  /** Wrong passwords for one key in 15 minutes; 5 if absent. */
  readonly passwordTries?: number;
  /** Reveals of one claim by one caller in an hour; 30 if absent, null for any number. */
  readonly claimReveals?: number | null;
  /** Bytes of claims that one key may post in 24 hours; 16 MiB if absent. */
  readonly claimBytesPerKey?: number;
  /**
   * Trusted makers of key hardware, whose attestations are required. Without any, the declaration `hardware` is
   * believed.
   */
  readonly hardwareRoots?: HardwareRoots;
  /** Seconds from the acceptance of an endorsement to its effect; a day if absent. */
  readonly endorsementActivationDelaySeconds?: number;
  /** Attestation requests to one target in an hour; 50 if absent, null for any number. */
  readonly requestQuota?: number | null;
  /** Request policies published for one target in an hour; 20 if absent, null for any number. */
  readonly policyQuota?: number | null;
  /** Trust configurations that one key may store in an hour; 20 if absent, null for any number. */
  readonly trustConfigQuota?: number | null;
  /** Anchors besides the operator key, and the parameters of the trust formula; the documented defaults if absent. */
  readonly trust?: Partial<TrustSettings>;
  /** Bounds and cache of graph traversals; the documented defaults if absent. */
  readonly graphs?: GraphSettings;
  /** Webhooks that one address may make in 24 hours; 20 if absent, null for any number. */
  readonly webhooksPerAddress?: number | null;
  /** Whether webhooks may have addresses that are not on the public internet; false if absent. */
  readonly webhookAllowPrivate?: boolean;
  /** Bytes that clients may have stored in 24 hours; any number if absent. */
  readonly budgets?: BudgetLimits;
  /** The rule of who may write. Everybody may if it is absent. */
  readonly writers?: WritersSettings;
  readonly clock?: Clock;
  /** Where several nodes keep the log: its journal, and whether this one may append. */
  readonly replicated?: Required<Pick<LogOptions, "journal" | "standing">>;
}

/** Of a registry whose log another thread writes. */
export type ServedOptions = Omit<RegistryOptions, "pool" | "replicated" | keyof Erasure>;

export interface Registry {
  readonly log: Log;
  readonly writer: Writer;
  readonly writers: Writers;
  /** Runs long queries in turns. */
  readonly queries: Slices;
  readonly keys: Keys;
  readonly keyLifecycle: KeyLifecycle;
  readonly challenges: Challenges;
  readonly challengeUses: ChallengeUses;
  readonly passwords: Passwords;
  readonly accounts: Accounts;
  readonly credentials: Credentials;
  readonly claims: Claims;
  readonly attestations: Attestations;
  readonly verification: Verification;
  readonly trust: TrustService;
  readonly trustConfigs: TrustConfigs;
  readonly graphs: Graphs;
  readonly endorsements: Endorsements;
  readonly endorsementQueries: EndorsementQueries;
  readonly requests: Requests;
  readonly requestQueries: RequestQueries;
  readonly policies: Policies;
  readonly inbox: Inbox;
  readonly webhooks: Webhooks;
  /** Answers all accepted commands, then closes the log. The caller closes the pool and the operator key. */
  close(): Promise<void>;
}

/**
 * A registry as it is served. Some of it may be in another thread: whatever remembers something about requests, so that
 * there is one of it for a log.
 */
export type Served = Omit<Registry, keyof Owned | "passwords" | "claims" | "close"> &
  Omit<Owned, "passwords" | "claims" | "challengeUses"> & {
    readonly passwords: PasswordService;
    readonly claims: Pick<Claims, "checkPoster" | "post" | "list" | "payload"> & Owned["claims"];
  };

/** What remembers something about requests; in the thread of the log's writer. */
export interface Owned {
  readonly challengeUses: Pick<ChallengeUses, "settle">;
  readonly passwords: Pick<Passwords, "set" | "check">;
  readonly accounts: Pick<Accounts, "create" | "recover">;
  readonly claims: {
    reveal(
      id: number,
      reveal: Reveal,
      caller: string,
    ): { readonly valid: boolean } | Promise<{ readonly valid: boolean }>;
  };
}

/** Opens the log at `options.path` with its registry. @throws CairnlogError as `openLog` does */
export async function openRegistry(options: RegistryOptions): Promise<Registry & { readonly log: LogWriter }> {
  // Without the pool: a verification of the log starts threads of its own, which let all others go first.
  const { pool, operator, replicated, ...given } = options;
  const log = await openLog({ ...given, signer: operator, projection, ...replicated });
  return { ...registryOver(log, log, options), writer: serviceWriter(log) };
}

/**
 * Opens the log at `options.path`, which another process writes, with its registry. Every command is refused, and
 * `operator` need not be able to sign.
 * @throws CairnlogError as `openLogReader` does
 */
export async function openRegistryReader(options: RegistryOptions): Promise<Registry & { readonly log: LogReader }> {
  const { path, operator } = options;
  return registryOver(await openLogReader({ path, operatorKey: operator.public.pem, projection }), NO_WRITER, options);
}

const writtenElsewhere = (): CairnlogError =>
  new CairnlogError("signer-unavailable", "This log is written elsewhere; here it is read.");
const refuse = () => Promise.reject(writtenElsewhere());

/** Of a log that another process writes. */
const NO_WRITER: Writer = {
  append: refuse,
  execute: refuse,
  enqueue: (_command, _input, _resolve, reject) => reject(writtenElsewhere()),
  signHead: refuse,
  queued: 0,
  batches: 0,
  observeRows() {},
};

/** The registry of an open log. Closing the registry closes the log. */
function registryOver<L extends Log>(log: L, writer: Writer, options: RegistryOptions): Registry & { readonly log: L } {
  const { pool, clock = systemClock } = options;
  const { challengeTtlSeconds: ttlSeconds = DEFAULT_CHALLENGE_TTL_S, passwordTries = DEFAULT_PASSWORD_TRIES } = options;
  const base = baseOf(log, writer, options, pool);
  const { keys, verifier, writes } = base;
  // One hasher for everything that is hashed slowly, because each hasher keeps a worker free for signatures.
  const hasher = new PasswordHasher(pool);
  const passwords = new Passwords({ log, writer, writes, hasher, clock, tries: passwordTries });
  const challengeUses = new ChallengeUses({ log, writer, clock, ttlSeconds });
  const concepts = conceptsOver(base, options, { challengeUses, passwords });
  return {
    ...concepts,
    log,
    challengeUses,
    passwords,
    accounts: new Accounts({ log, writes, keys, credentials: concepts.credentials, verifier, hasher, clock }),
    claims: claimsOver(base, concepts.credentials, options),
  };
}

/**
 * The registry of a log that another thread writes, which has what is `owned`. Closing it closes the log.
 */
export function servedRegistry<L extends Log & Writer>(
  log: L,
  options: ServedOptions,
  owned: Owned,
): Served & { readonly log: L; close(): Promise<void> } {
  const base = baseOf(log, log, options, null);
  const rows = new PasswordRows(log, log);
  const passwords: PasswordService = {
    isSet: (fingerprint) => rows.isSet(fingerprint),
    version: (fingerprint) => rows.version(fingerprint),
    set: (fingerprint, change, client = null) =>
      base.writes.through(client, fingerprint, (known) => owned.passwords.set(fingerprint, change, known)),
    async check(fingerprint, password, isHeld) {
      if (rows.isSet(fingerprint)) await owned.passwords.check(fingerprint, password, isHeld);
    },
  };
  const concepts = conceptsOver(base, options, { challengeUses: owned.challengeUses, passwords });
  const claims = claimsOver(base, concepts.credentials, options);
  return {
    ...concepts,
    log,
    passwords,
    accounts: owned.accounts,
    claims: {
      checkPoster: (fingerprint) => claims.checkPoster(fingerprint),
      post: (payload, poster, client) => claims.post(payload, poster, client),
      list: (lookupKey, paging) => claims.list(lookupKey, paging),
      payload: (id) => claims.payload(id),
      reveal: (id, reveal, caller) => owned.claims.reveal(id, reveal, caller),
    },
  };
}

function claimsOver({ log, writes }: Base, credentials: Credentials, options: ServedOptions): Claims {
  const { clock = systemClock, claimReveals: reveals = DEFAULT_CLAIM_REVEALS } = options;
  const { claimBytesPerKey: bytesPerKey = DEFAULT_CLAIM_BYTES_PER_KEY } = options;
  return new Claims({ log, writes, credentials, clock, reveals, bytesPerKey });
}

interface Base {
  readonly log: Log;
  readonly writer: Writer;
  readonly graph: GraphParts;
  readonly slices: Slices;
  readonly queries: Slices;
  readonly trust: TrustService;
  readonly writers: Writers;
  readonly writes: Writes;
  readonly keys: Keys;
  readonly verifier: SignatureVerifier;
}

function baseOf(log: Log, writer: Writer, options: ServedOptions, pool: Pool | null): Base {
  const { operator, clock = systemClock } = options;
  const activationDelaySeconds = options.endorsementActivationDelaySeconds ?? DEFAULT_ACTIVATION_DELAY_S;
  const graph = { log, operator: operator.fingerprint, activationDelaySeconds };
  const slices = new Slices(writer);
  const queries = new Slices(writer);
  const settings = { ...DEFAULT_TRUST_SETTINGS, ...options.trust };
  const trust = new TrustService({ graph, slices, querySlices: queries, clock, settings });
  const { writers: rule = { rule: "everybody" } } = options;
  const writers = new Writers({ ...graph, anchors: settings.anchors, clock, settings: rule });
  const writes = new Writes(writer, trust, writers);
  const verifier = new SignatureVerifier(pool);
  const keys = new Keys({ log, writes, verifier, operator, clock });
  return { log, writer, graph, slices, queries, trust, writers, writes, verifier, keys };
}

/** Everything that remembers nothing about requests, or only what anybody may forget. */
function conceptsOver(
  { log, writer, graph, slices, queries, trust, writers, writes, keys, verifier }: Base,
  options: ServedOptions,
  { challengeUses: uses, passwords }: Pick<Owned, "challengeUses"> & Pick<Served, "passwords">,
) {
  const { operator, predicateBase, clock = systemClock, webhookAllowPrivate: allowPrivate = false } = options;
  const { webhooksPerAddress: perAddress = DEFAULT_WEBHOOKS_PER_ADDRESS } = options;
  const { hardwareRoots: roots = new HardwareRoots() } = options;
  const { challengeTtlSeconds: ttlSeconds = DEFAULT_CHALLENGE_TTL_S } = options;
  const challenges = new Challenges({ log, writer, keys, verifier, uses, clock, ttlSeconds });
  const credentials = new Credentials({ writes, keys, verifier, challenges, roots, clock });
  const { trustConfigQuota = DEFAULT_TRUST_CONFIG_QUOTA } = options;
  const activationDelay = graph.activationDelaySeconds;
  const trustConfigs = new TrustConfigs({ log, writes, keys, quota: trustConfigQuota });
  const endorsementQueries = new EndorsementQueries({ log, keys, clock, activationDelay, trust });
  const { requestQuota = DEFAULT_REQUEST_QUOTA, policyQuota = DEFAULT_POLICY_QUOTA } = options;
  return {
    writer,
    writers,
    keys,
    challenges,
    keyLifecycle: new KeyLifecycle({ writes, verifier, operator, log }),
    credentials,
    attestations: new Attestations({ log, writes, verifier, passwords, operator, predicateBase }),
    verification: new Verification({ log, keys, verifier, trust, trustConfigs }),
    queries,
    trust,
    trustConfigs,
    graphs: new Graphs({ graph, keys, slices: queries, clock, settings: options.graphs ?? {} }),
    endorsements: new Endorsements({ log, writes, operator: operator.fingerprint, queries: endorsementQueries, trust }),
    endorsementQueries,
    requests: new Requests({ log, writes, operator, trust, quota: requestQuota }),
    requestQueries: new RequestQueries({ log, keys }),
    policies: new Policies({ log, writes, keys, clock, quota: policyQuota }),
    inbox: new Inbox({ log, writes }),
    webhooks: new Webhooks({ log, writer, writes, operator: operator.fingerprint, allowPrivate, trust, perAddress }),
    close: () =>
      closeAll(
        () => slices.close(),
        () => queries.close(),
        () => log.close(),
      ),
  };
}
