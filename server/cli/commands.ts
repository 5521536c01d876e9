/** The list of subcommands: their summaries in the overview, and the location of their code. */
import type { ListedCommand } from "./completion.js";

/** Headings of the overview. */
const SIGN = "Sign and verify:";
const PEOPLE = "Keys and people:";
const LOG = "Read and watch a log:";
const RUN = "Run a service:";
const COMMAND = "This command:";

/** Name → subcommand, in the order of the overview. */
export const COMMANDS: Readonly<Record<string, ListedCommand>> = {
  keygen: {
    group: SIGN,
    summary: "make a signing key",
    load: async () => (await import("./identity/keygen.js")).keygen,
  },
  attest: {
    group: SIGN,
    summary: "sign files and have the signatures recorded",
    load: async () => (await import("./signing/attest.js")).attest,
  },
  verify: {
    group: SIGN,
    summary: "check files and their attestations offline",
    load: async () => (await import("./verifying/verify.js")).verify,
  },
  receipt: {
    group: SIGN,
    summary: "write a proof of an entry that other tools verify",
    load: async () => (await import("./log/receipt.js")).receipt,
  },
  composite: {
    group: SIGN,
    summary: "make one document of several files",
    load: async () => (await import("./signing/composite.js")).composite,
  },
  claim: {
    group: SIGN,
    summary: "encrypt, decrypt, check, post and find claims",
    load: async () => (await import("./signing/claim.js")).claim,
  },
  register: {
    group: PEOPLE,
    summary: "register a key",
    load: async () => (await import("./identity/lifecycle.js")).register,
  },
  writers: {
    group: PEOPLE,
    summary: "who may write to a log",
    load: async () => (await import("./identity/lifecycle.js")).writers,
  },
  login: {
    group: PEOPLE,
    summary: "sign in and keep the session",
    load: async () => (await import("./identity/login.js")).login,
  },
  keys: {
    group: PEOPLE,
    summary: "list and show registered keys",
    load: async () => (await import("./identity/keys.js")).keys,
  },
  endorse: {
    group: PEOPLE,
    summary: "endorsements: offer, accept, withdraw, list, warn",
    load: async () => (await import("./signing/endorse.js")).endorse,
  },
  trust: {
    group: PEOPLE,
    summary: "trust configurations and the graph of endorsements",
    load: async () => (await import("./signing/trust.js")).trust,
  },
  request: {
    group: PEOPLE,
    summary: "ask another key for an attestation",
    load: async () => (await import("./signing/requests.js")).request,
  },
  respond: {
    group: PEOPLE,
    summary: "accept or decline a request for an attestation",
    load: async () => (await import("./signing/requests.js")).respond,
  },
  inbox: {
    group: PEOPLE,
    summary: "what happened to your requests, and which you got",
    load: async () => (await import("./signing/requests.js")).inbox,
  },
  policy: {
    group: PEOPLE,
    summary: "publish and show request policies",
    load: async () => (await import("./signing/policy.js")).policy,
  },
  password: {
    group: PEOPLE,
    summary: "set or change the password of a key",
    load: async () => (await import("./identity/login.js")).password,
  },
  account: {
    group: PEOPLE,
    summary: "open an account, get it back, add keys to it",
    load: async () => (await import("./identity/account.js")).account,
  },
  succeed: {
    group: PEOPLE,
    summary: "replace a key by a new one",
    load: async () => (await import("./identity/lifecycle.js")).succeed,
  },
  revoke: {
    group: PEOPLE,
    summary: "disable a key for ever",
    load: async () => (await import("./identity/lifecycle.js")).revoke,
  },
  log: {
    group: LOG,
    summary: "read the log, and check what is read",
    load: async () => (await import("./log/log.js")).log,
  },
  monitor: {
    group: LOG,
    summary: "follow a log, verify and mirror it, and raise an alarm when it lies",
    load: async () => (await import("./log/monitor.js")).monitor,
  },
  witness: {
    group: LOG,
    summary: "cosign the checkpoints of other logs",
    load: async () => (await import("./log/witness.js")).witness,
  },
  publish: {
    group: LOG,
    summary: "put the checkpoints and tiles of a log into a folder or a bucket",
    load: async () => (await import("./log/publish.js")).publish,
  },
  export: {
    group: LOG,
    summary: "write the entries of a log to a file",
    load: async () => (await import("./log/export.js")).exportLog,
  },
  anchor: {
    group: LOG,
    summary: "anchor the log in Bitcoin, or see how far that is",
    load: async () => (await import("./log/anchor.js")).anchor,
  },
  webhook: {
    group: LOG,
    summary: "subscribe to events; receive deliveries and check them",
    load: async () => (await import("./log/webhook.js")).webhook,
  },
  serve: {
    group: RUN,
    summary: "run the service",
    load: async () => (await import("./operate/serve.js")).serve,
  },
  settings: {
    group: RUN,
    summary: "show the settings of a service, and check them before a restart",
    load: async () => (await import("./operate/settings.js")).settings,
  },
  demo: {
    group: RUN,
    summary: "run a service with a filled log, and print a tour of it",
    load: async () => (await import("./demo/demo.js")).demo,
  },
  operator: {
    group: RUN,
    summary: "hand the log to another operator key; show the key of checkpoints",
    load: async () => (await import("./operate/operator.js")).operator,
  },
  replicate: {
    group: RUN,
    summary: "keep the log on several machines, through PostgreSQL",
    load: async () => (await import("./replication/replicate.js")).replicate,
  },
  promote: {
    group: RUN,
    summary: "have this node of a replicated log lead it",
    load: async () => (await import("./replication/promote.js")).promote,
  },
  import: {
    group: RUN,
    summary: "begin a log with entries that were made elsewhere",
    load: async () => (await import("./operate/import.js")).importLog,
  },
  backup: {
    group: RUN,
    summary: "back up a data directory, also while the service runs",
    load: async () => (await import("./operate/backup.js")).backup,
  },
  restore: {
    group: RUN,
    summary: "bring a log back from a backup",
    load: async () => (await import("./operate/restore.js")).restore,
  },
  fsck: {
    group: RUN,
    summary: "check a data directory, and rebuild what can be",
    load: async () => (await import("./operate/fsck.js")).fsck,
  },
  bench: {
    group: RUN,
    summary: "measure signatures, disk and appends on this machine",
    load: async () => (await import("./operate/bench.js")).bench,
  },
  config: {
    group: COMMAND,
    summary: "remember a service, your key and the key of its operator",
    load: async () => (await import("./connection/config.js")).config,
  },
  completion: {
    group: COMMAND,
    summary: "print a completion script for your shell",
    load: async () => (await import("./completion.js")).completion(COMMANDS),
  },
};
