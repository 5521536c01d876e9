/**
 * Every setting of the service in one table: its environment variable, its default, what it means, and its kind of value
 * (`settingvalues.ts`).
 */
import { availableParallelism } from "node:os";
import { DEFAULT_SIGNER_DEADLINE_MS } from "../../engine/crypto/signer/socket-signer.js";
import { DEFAULT_BYTES_FROM_STRANGERS, DEFAULT_BYTES_PER_ADDRESS } from "../../engine/log/state/executor.js";
import { NATIVE_CODE_VARIABLE } from "../../engine/native/checked.js";
import { DEFAULT_CHALLENGE_TTL_S } from "../../engine/registry/access/challenges.js";
import { DEFAULT_PASSWORD_TRIES, PASSWORD_WINDOW_SECONDS } from "../../engine/registry/access/passwords.js";
import { DEFAULT_CLAIM_BYTES_PER_KEY } from "../../engine/registry/claims/claims.js";
import { DEFAULT_ACTIVATION_DELAY_S } from "../../engine/registry/endorsements/queries.js";
import { DEFAULT_GRAPH_BOUNDS } from "../../engine/registry/graph/graph.js";
import { DEFAULT_GRAPH_CACHE_S } from "../../engine/registry/graph/recent-graphs.js";
import { DEFAULT_POLICY_QUOTA } from "../../engine/registry/requests/policies.js";
import { DEFAULT_REQUEST_QUOTA } from "../../engine/registry/requests/requests.js";
import { DEFAULT_TRUST_SETTINGS } from "../../engine/registry/trust/service.js";
import { DEFAULT_MIN_FREE_BYTES } from "../../engine/store/lmdb/health.js";
import { LIMITS, type LimitName } from "../http/limits/limits.js";
import { UWS_IDLE_S } from "../http/transport/transport.js";
import { LOG_LEVELS } from "../process/logger.js";
import {
  anyPath,
  calendars,
  fingerprints,
  fraction,
  hostNames,
  httpsUrl,
  integer,
  type Kind,
  line,
  logLevel,
  nativeCode,
  networks,
  onOff,
  optionalLogName,
  optionalOrigin,
  optionalPath,
  origins,
  replicationUrl,
  replicationVerify,
  signerAddress,
  socketAddress,
  textSetting,
  transportName,
  writersRule,
} from "./settingvalues.js";

const MAX_WORKERS = 256;
const MAX_FRONT_ENDS = 64;
const MAX_COUNT = 1_000_000_000;
/** A time is remembered for each. */
const MAX_PASSWORD_TRIES = 1_000;
const MAX_TTL_S = 86_400;
const MAX_GRAPH_S = 3_600;
const MAX_ACTIVATION_DELAY_S = 365 * 86_400;
const MAX_REQUEST_TIMEOUT_S = 3_600;
const MAX_STOP_S = 600;
const MAX_CONNECTIONS = 1_000_000;
const MAX_SIGNER_TIMEOUT_S = 300;
const MAX_CHECKPOINT_INTERVAL_S = 86_400;
/** Eight times as many, and what one write adds, can still be counted exactly. */
const MAX_BYTES = 10 ** 15 - 1;
const MAX_LAG_S = 7 * 86_400;
const MAX_IDLE_S = 3_600;
const MAX_ORIGINS = 32;
const MAX_MIRRORS = 16;

/** Each may add 10 kB to a proof. */
const MAX_CALENDARS = 8;
const MAX_UPGRADE_INTERVAL_S = 7 * 86_400;

/** One setting. `read` and `check` throw an `Error` whose message completes "NAME must be …". */
export interface Setting<T> extends Kind<T> {
  readonly name: string;
  /** Text taken when the variable is absent or empty. */
  readonly fallback: string;
  /** What is shown instead of `fallback` where that depends on the machine. */
  readonly fallbackShown?: string;
  readonly about: string;
}

const rateLimit = (limit: LimitName): Setting<number> => ({
  name: `SERVICE_RATE_LIMIT_${limit.replaceAll("-", "_").toUpperCase()}`,
  fallback: `${LIMITS[limit].requests}`,
  about: `requests an address may make in ${LIMITS[limit].seconds} seconds: ${LIMITS[limit].about}`,
  ...integer(1, MAX_COUNT),
});

const introduction = (name: string, what: string): Setting<string | null> => ({
  ...{ name, fallback: "", fallbackShown: "none", about: `${what}, as the page at / introduces it` },
  ...line(300),
});

export const TABLE = {
  port: {
    name: "PORT",
    fallback: "8080",
    about: "TCP port to listen on; 0 chooses a free port",
    ...integer(0, 65_535),
  },
  host: {
    name: "HOST",
    fallback: "127.0.0.1",
    about: "address to listen on; 0.0.0.0 or :: listens on all",
    ...textSetting,
  },
  publicUrls: {
    name: "SERVICE_PUBLIC_URL",
    fallback: "",
    fallbackShown: "none; then the service listens on loopback alone",
    about: "public addresses of the service, comma-separated, such as https://log.example; the first is its name",
    ...origins(MAX_ORIGINS),
  },
  metricsAddress: {
    name: "SERVICE_METRICS_ADDRESS",
    fallback: "",
    fallbackShown: "none: the service's own address has them",
    about: "host:port, or a port of 127.0.0.1, of a socket that alone serves /metrics and /readyz, without TLS",
    ...socketAddress,
  },
  dataDir: {
    name: "SERVICE_DATA_DIR",
    fallback: "./data",
    about: "data directory of the log; created if it does not exist",
    ...anyPath,
  },
  minFreeBytes: {
    name: "SERVICE_MIN_FREE_BYTES",
    fallback: String(DEFAULT_MIN_FREE_BYTES),
    about: "free bytes on the disk of the data directory below which appends are refused; reads go on",
    ...integer(0, 10 ** 15 - 1),
  },
  readOnly: {
    name: "SERVICE_READ_ONLY",
    fallback: "off",
    about:
      "on or off; on serves a monitor's mirror, or with SERVICE_REPLICATION a log without its private rows, and refuses every write",
    ...onOff,
  },
  obeyWithholding: {
    name: "SERVICE_OBEY_WITHHOLDING",
    fallback: "off",
    about:
      "on or off; with SERVICE_READ_ONLY: on takes payloads that the log's operator withholds from this disk, too, at a start",
    ...onOff,
  },
  operatorKey: {
    name: "SERVICE_OPERATOR_KEY",
    fallback: "",
    fallbackShown: "operator.pem in the data directory, created if it does not exist",
    about: "PEM file of the private key that signs tree heads",
    ...optionalPath,
  },
  signer: {
    name: "SERVICE_SIGNER",
    fallback: "",
    fallbackShown: "none: the service holds the key itself",
    about: "unix:/path of the socket of a process that holds the operator key and signs, instead of a file",
    ...signerAddress,
  },
  signerTimeoutSeconds: {
    name: "SERVICE_SIGNER_TIMEOUT_S",
    fallback: `${DEFAULT_SIGNER_DEADLINE_MS / 1000}`,
    about: "seconds in which that process must sign a batch of up to 512 heads",
    ...integer(1, MAX_SIGNER_TIMEOUT_S),
  },
  replication: {
    name: "SERVICE_REPLICATION",
    fallback: "",
    fallbackShown: "none: this machine alone keeps the log",
    about:
      "postgres://user:password@host:port,host:port/database of the PostgreSQL servers through which several nodes keep the log",
    ...replicationUrl,
  },
  replicationVerify: {
    name: "SERVICE_REPLICATION_VERIFY",
    fallback: "standby",
    about:
      "standby: a standby must show every record before it counts; engine: PostgreSQL's word is enough, where no standby can be read",
    ...replicationVerify,
  },
  nodeUrl: {
    name: "SERVICE_NODE_URL",
    fallback: "",
    fallbackShown: "none",
    about: "origin at which clients reach this node of a replicated log; others send writers there while it leads",
    ...optionalOrigin,
  },
  replicationMaxLagSeconds: {
    name: "SERVICE_REPLICATION_MAX_LAG_S",
    fallback: "60",
    about: "seconds for which a node answers reads without news of the replicated log; beyond, it refuses them",
    ...integer(1, MAX_LAG_S),
  },
  logName: {
    name: "SERVICE_LOG_NAME",
    fallback: "",
    fallbackShown:
      "for a new log the host of SERVICE_PUBLIC_URL, otherwise cairnlog/ and 16 digits of the operator's fingerprint",
    about: "name of the log in its checkpoints; choose a host and path that you own, and never change it",
    ...optionalLogName,
  },
  tlogOrigin: {
    name: "SERVICE_TLOG_ORIGIN",
    fallback: "",
    fallbackShown: "the log's name and /tlog",
    about:
      "origin of the checkpoints at /tlog/checkpoint: the public address of /tlog without https://; never change it",
    ...optionalLogName,
  },
  checkpointIntervalSeconds: {
    name: "SERVICE_CHECKPOINT_INTERVAL_S",
    fallback: "10",
    about:
      "seconds from one checkpoint at /tlog/checkpoint to the next while the log grows; an idle log has one at once",
    ...integer(1, MAX_CHECKPOINT_INTERVAL_S),
  },
  witnesses: {
    name: "SERVICE_WITNESSES",
    fallback: "",
    fallbackShown: "none",
    about:
      "policy file (tlog-policy) of the witnesses that cosign the checkpoints; /tlog/checkpoint then has a quorum of them",
    ...optionalPath,
  },
  mirrors: {
    name: "SERVICE_MIRRORS",
    fallback: "",
    fallbackShown: "none",
    about:
      "origins of mirrors and followers, comma-separated, that a start asks (beside witnesses) whether the log was set back",
    ...origins(MAX_MIRRORS),
  },
  predicateBase: {
    name: "SERVICE_PREDICATE_BASE",
    fallback: "https://x-service.example/predicates",
    about: "URL under which attestation types belong to the operator",
    ...httpsUrl,
  },
  workers: {
    name: "SERVICE_WORKERS",
    fallback: `${Math.max(1, availableParallelism() - 1)}`,
    fallbackShown: "cores − 1, at least 1",
    about: "worker threads for signatures and verification",
    ...integer(1, MAX_WORKERS),
  },
  frontEnds: {
    name: "SERVICE_FRONT_ENDS",
    fallback: `${Math.max(1, availableParallelism() - 1)}`,
    fallbackShown: "cores − 1, at least 1",
    about: "threads that serve HTTP beside the one that writes; with 0 that one serves, too",
    ...integer(0, MAX_FRONT_ENDS),
  },
  rateLimits: {
    name: "SERVICE_RATE_LIMITS",
    fallback: "on",
    about: "on or off; off is for load tests, and answers then carry no RateLimit headers",
    ...onOff,
  },
  rateLimitGeneral: rateLimit("general"),
  rateLimitKeyRegistration: rateLimit("key-registration"),
  rateLimitAttestation: rateLimit("attestation"),
  rateLimitEndorsementOffer: rateLimit("endorsement-offer"),
  rateLimitClaimReveal: rateLimit("claim-reveal"),
  rateLimitAnchoring: rateLimit("anchoring"),
  rateLimitLogVerification: rateLimit("log-verification"),
  rateLimitTlog: rateLimit("tlog"),
  requestQuota: {
    name: "RATE_LIMIT_ATTESTATION_REQUEST_PER_TARGET",
    fallback: `${DEFAULT_REQUEST_QUOTA}`,
    about: "attestation requests that one key may be sent in 3600 seconds",
    ...integer(1, MAX_COUNT),
  },
  policyQuota: {
    name: "RATE_LIMIT_REQUEST_POLICY_PER_TARGET",
    fallback: `${DEFAULT_POLICY_QUOTA}`,
    about: "request policies that may be published for one key in 3600 seconds",
    ...integer(1, MAX_COUNT),
  },
  claimBytesPerKey: {
    name: "SERVICE_CLAIM_BYTES_PER_KEY",
    fallback: `${DEFAULT_CLAIM_BYTES_PER_KEY}`,
    about: "bytes of encrypted claims that one key may post in 24 hours, whatever SERVICE_RATE_LIMITS says",
    ...integer(1, Number.MAX_SAFE_INTEGER),
  },
  bytesPerAddress: {
    name: "SERVICE_BYTES_PER_ADDRESS",
    fallback: `${DEFAULT_BYTES_PER_ADDRESS}`,
    about:
      "bytes that the writes of one address may store in 24 hours; eight times as many for the /48 of an IPv6 address",
    ...integer(1, MAX_BYTES),
  },
  bytesFromStrangers: {
    name: "SERVICE_BYTES_FROM_STRANGERS",
    fallback: `${DEFAULT_BYTES_FROM_STRANGERS}`,
    about: "bytes that the writes of all keys which no trust anchor reaches may store in 24 hours, together",
    ...integer(1, MAX_BYTES),
  },
  passwordTries: {
    name: "SERVICE_RATE_LIMIT_PIN",
    fallback: `${DEFAULT_PASSWORD_TRIES}`,
    about: `wrong passwords for one key in ${PASSWORD_WINDOW_SECONDS} seconds, regardless of SERVICE_RATE_LIMITS`,
    ...integer(1, MAX_PASSWORD_TRIES),
  },
  challengeTtlSeconds: {
    name: "SERVICE_CHALLENGE_TTL_S",
    fallback: `${DEFAULT_CHALLENGE_TTL_S}`,
    about: "seconds in which a challenge must be answered",
    ...integer(1, MAX_TTL_S),
  },
  endorsementActivationDelaySeconds: {
    name: "SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S",
    fallback: `${DEFAULT_ACTIVATION_DELAY_S}`,
    about: "seconds from the acceptance of an endorsement to its effect",
    ...integer(0, MAX_ACTIVATION_DELAY_S),
  },
  endorsementBaseCapacity: {
    name: "SERVICE_ENDORSEMENT_BASE_CAPACITY",
    fallback: `${DEFAULT_TRUST_SETTINGS.baseCapacity}`,
    about: "active endorsements that a key without any trust may issue before they are discounted",
    ...integer(0, MAX_COUNT),
  },
  endorsementMinTrust: {
    name: "SERVICE_ENDORSEMENT_MIN_TRUST",
    fallback: `${DEFAULT_TRUST_SETTINGS.minTrust}`,
    about: "trust level that a key needs to endorse others",
    ...fraction,
  },
  trustAnchors: {
    name: "SERVICE_TRUST_ANCHORS",
    fallback: "",
    fallbackShown: "none",
    about: "fingerprints, comma-separated, of keys that the service trusts fully beside the operator's",
    ...fingerprints,
  },
  writers: {
    name: "SERVICE_WRITERS",
    fallback: "everybody",
    about:
      "who may write: everybody, registered or endorsed keys, or a file of keys (ssh's allowed signers), read again on SIGHUP",
    ...writersRule,
  },
  graphTimeoutSeconds: {
    name: "SERVICE_GRAPH_TIMEOUT_S",
    fallback: `${DEFAULT_GRAPH_BOUNDS.seconds}`,
    about: "seconds after which an unfinished graph is answered as far as it is known",
    ...integer(1, MAX_GRAPH_S),
  },
  graphCacheSeconds: {
    name: "SERVICE_GRAPH_CACHE_TTL_S",
    fallback: `${DEFAULT_GRAPH_CACHE_S}`,
    about: "seconds for which a graph is cached; 0 switches the cache off",
    ...integer(0, MAX_GRAPH_S),
  },
  otsCalendars: {
    name: "SERVICE_OTS_CALENDARS",
    fallback: "",
    fallbackShown: "none: nothing can be anchored",
    about: `OpenTimestamps calendars, at most ${MAX_CALENDARS}: http: or https: URLs, comma-separated; no other calendar is ever contacted`,
    ...calendars(MAX_CALENDARS),
  },
  otsUpgradeIntervalSeconds: {
    name: "SERVICE_OTS_UPGRADE_INTERVAL_S",
    fallback: "3600",
    about: "seconds between two rounds of asking the calendars for the Bitcoin proofs of anchored entries",
    ...integer(1, MAX_UPGRADE_INTERVAL_S),
  },
  sessionTtlSeconds: {
    name: "SERVICE_SESSION_TTL_S",
    fallback: "3600",
    about: "seconds for which a session token is valid; every session ends 24 hours after sign-in",
    ...integer(1, MAX_TTL_S),
  },
  hardwareRoots: {
    name: "SERVICE_HARDWARE_ROOTS",
    fallback: "",
    fallbackShown: "none: a hardware credential is accepted on the word of its holder",
    about: "PEM bundle of the root certificates for hardware attestations",
    ...optionalPath,
  },
  trustedProxies: {
    name: "SERVICE_TRUSTED_PROXIES",
    fallback: "",
    fallbackShown: "none",
    about: "addresses or networks (CIDR), comma-separated, whose X-Forwarded-For is trusted",
    ...networks,
  },
  allowedOrigins: {
    name: "SERVICE_ALLOWED_ORIGINS",
    fallback: "",
    fallbackShown: "none: only pages of the service's own origins may write",
    about: "origins, comma-separated, whose pages may write; pages of every origin may read",
    ...origins(MAX_ORIGINS),
  },
  allowedHosts: {
    name: "SERVICE_ALLOWED_HOSTS",
    fallback: "",
    fallbackShown: "none: those of the public addresses, of the address it listens on, and of loopback",
    about: "further names of hosts, comma-separated and without ports, by which writes may ask for the service",
    ...hostNames(MAX_ORIGINS),
  },
  webhookAllowPrivate: {
    name: "SERVICE_WEBHOOK_ALLOW_PRIVATE",
    fallback: "off",
    about: "on or off; on lets webhooks call addresses that are not public, including those of this machine",
    ...onOff,
  },
  explorer: {
    name: "SERVICE_EXPLORER",
    fallback: "on",
    about: "on or off; off does not serve the page at / that shows the log",
    ...onOff,
  },
  operatorName: introduction("SERVICE_OPERATOR_NAME", "who runs the log"),
  logDescription: introduction("SERVICE_LOG_DESCRIPTION", "what the log is for, in a sentence"),
  transport: {
    name: "SERVICE_TRANSPORT",
    fallback: "",
    fallbackShown: "uws if its binary loads, otherwise node",
    about: "HTTP library: uws (uWebSockets.js) or node (node:http, for machines where uWebSockets.js does not load)",
    ...transportName,
  },
  nativeCode: {
    name: NATIVE_CODE_VARIABLE,
    fallback: "known",
    about:
      "known or any; any also loads binaries of dependencies whose hashes this version does not know (your own builds)",
    ...nativeCode,
  },
  maxBodyBytes: {
    name: "SERVICE_MAX_BODY_BYTES",
    fallback: `${1024 * 1024}`,
    about: "largest request body",
    ...integer(1024, 64 * 1024 * 1024),
  },
  maxPendingBytes: {
    name: "SERVICE_MAX_PENDING_BYTES",
    fallback: `${64 * 1024 * 1024}`,
    about:
      "bytes of request bodies held for all clients together, and as many again for answers that clients read slowly",
    ...integer(1024, 64 * 1024 * 1024 * 1024),
  },
  requestTimeoutSeconds: {
    name: "SERVICE_REQUEST_TIMEOUT_S",
    fallback: "30",
    about: "seconds in which a request body must arrive",
    ...integer(1, MAX_REQUEST_TIMEOUT_S),
  },
  idleTimeoutSeconds: {
    name: "SERVICE_IDLE_TIMEOUT_S",
    fallback: String(UWS_IDLE_S),
    about: "seconds after which a connection without a request is closed; others than 10 need SERVICE_TRANSPORT=node",
    ...integer(1, MAX_IDLE_S),
  },
  stopTimeoutSeconds: {
    name: "SERVICE_STOP_TIMEOUT_S",
    fallback: "10",
    about: "seconds within which a stop ends, whatever hangs; seven tenths of them are for clients that read slowly",
    ...integer(1, MAX_STOP_S),
  },
  maxConnections: {
    name: "SERVICE_MAX_CONNECTIONS",
    fallback: "10000",
    about: "open connections; fewer if the process may not open so many files",
    ...integer(1, MAX_CONNECTIONS),
  },
  tlsCertificate: {
    name: "SERVICE_TLS_CERT",
    fallback: "",
    fallbackShown: "none: plain HTTP",
    about: "PEM file of the service's certificate and its chain",
    ...optionalPath,
  },
  tlsKey: {
    name: "SERVICE_TLS_KEY",
    fallback: "",
    fallbackShown: "none",
    about: "PEM file of the certificate's private key",
    ...optionalPath,
  },
  logLevel: {
    name: "LOG_LEVEL",
    fallback: "info",
    about: `log level on stderr: ${LOG_LEVELS.join(", ")}; debug logs every request`,
    ...logLevel,
  },
} satisfies Record<string, Setting<unknown>>;
