/** The list of subcommands: their summaries in the overview, and the location of their code. */
import type { ListedCommand } from "./usage.js";

/** Name → subcommand, in the order of the overview. */
export const COMMANDS: Readonly<Record<string, ListedCommand>> = {
  serve: {
    summary: "run the service",
    load: async () => (await import("./operate/serve.js")).serve,
  },
  demo: {
    summary: "run a service with a filled log, and print a tour of it",
    load: async () => (await import("./demo/demo.js")).demo,
  },
  keygen: {
    summary: "make a signing key",
    load: async () => (await import("./identity/keygen.js")).keygen,
  },
  attest: {
    summary: "sign files and have the signatures recorded",
    load: async () => (await import("./signing/attest.js")).attest,
  },
  verify: {
    summary: "check files and their attestations offline",
    load: async () => (await import("./signing/verify.js")).verify,
  },
  import: {
    summary: "begin a log with entries that were made elsewhere",
    load: async () => (await import("./operate/import.js")).importLog,
  },
  export: {
    summary: "write the entries of a log to a file",
    load: async () => (await import("./log/export.js")).exportLog,
  },
  claim: {
    summary: "encrypt, decrypt, check, post and find claims",
    load: async () => (await import("./signing/claim.js")).claim,
  },
  webhook: {
    summary: "subscribe to events; receive deliveries and check them",
    load: async () => (await import("./log/webhook.js")).webhook,
  },
  register: {
    summary: "register a key",
    load: async () => (await import("./identity/register.js")).register,
  },
  login: {
    summary: "sign in and keep the session",
    load: async () => (await import("./identity/login.js")).login,
  },
  succeed: {
    summary: "replace a key by a new one",
    load: async () => (await import("./identity/succeed.js")).succeed,
  },
  revoke: {
    summary: "disable a key for ever",
    load: async () => (await import("./identity/revoke.js")).revoke,
  },
  endorse: {
    summary: "endorsements: offer, accept, withdraw, list, warn",
    load: async () => (await import("./signing/endorse.js")).endorse,
  },
  request: {
    summary: "ask another key for an attestation",
    load: async () => (await import("./signing/request.js")).request,
  },
  respond: {
    summary: "accept or decline a request for an attestation",
    load: async () => (await import("./signing/respond.js")).respond,
  },
  inbox: {
    summary: "what happened to your requests, and which you got",
    load: async () => (await import("./signing/inbox.js")).inbox,
  },
  policy: {
    summary: "publish and show request policies",
    load: async () => (await import("./signing/policy.js")).policy,
  },
  trust: {
    summary: "trust configurations and the graph of endorsements",
    load: async () => (await import("./signing/trust.js")).trust,
  },
  keys: {
    summary: "list and show registered keys",
    load: async () => (await import("./identity/keys.js")).keys,
  },
  log: {
    summary: "read the log, and check what is read",
    load: async () => (await import("./log/log.js")).log,
  },
  monitor: {
    summary: "follow a log, verify and mirror it, and raise an alarm when it lies",
    load: async () => (await import("./log/monitor.js")).monitor,
  },
  witness: {
    summary: "cosign the checkpoints of other logs",
    load: async () => (await import("./log/witness.js")).witness,
  },
  composite: {
    summary: "make one document of several files",
    load: async () => (await import("./signing/composite.js")).composite,
  },
  password: {
    summary: "set or change the password of a key",
    load: async () => (await import("./identity/password.js")).password,
  },
  account: {
    summary: "open an account, get it back, add keys to it",
    load: async () => (await import("./identity/account.js")).account,
  },
  anchor: {
    summary: "anchor the log in Bitcoin, or see how far that is",
    load: async () => (await import("./log/anchor.js")).anchor,
  },
  bench: {
    summary: "measure signatures, disk and appends on this machine",
    load: async () => (await import("./operate/bench.js")).bench,
  },
  completion: {
    summary: "print a completion script for your shell",
    load: async () => (await import("./completion.js")).completion(COMMANDS),
  },
  fsck: {
    summary: "check a data directory, and rebuild what can be",
    load: async () => (await import("./operate/fsck.js")).fsck,
  },
  backup: {
    summary: "back up a data directory, also while the service runs",
    load: async () => (await import("./operate/backup.js")).backup,
  },
  replicate: {
    summary: "keep the log on several machines, through PostgreSQL",
    load: async () => (await import("./replication/replicate.js")).replicate,
  },
  promote: {
    summary: "have this node of a replicated log lead it",
    load: async () => (await import("./replication/promote.js")).promote,
  },
  receipt: {
    summary: "write a proof of an entry that other tools verify",
    load: async () => (await import("./log/receipt.js")).receipt,
  },
  operator: {
    summary: "hand the log to another operator key; show the key of checkpoints",
    load: async () => (await import("./operate/operator.js")).operator,
  },
  restore: {
    summary: "bring a log back from a backup",
    load: async () => (await import("./operate/restore.js")).restore,
  },
};
