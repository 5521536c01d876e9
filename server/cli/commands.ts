/** The list of subcommands: what the overview says of each, and where its code is. */
import type { Subcommand } from "./usage.js";

/** A subcommand in the list. The overview needs its name and its summary only, so its code is loaded when it is used. */
export interface ListedCommand {
  readonly summary: string;
  readonly load: () => Promise<Subcommand>;
}

/** Name → subcommand, in the order of the overview. */
export const COMMANDS: Readonly<Record<string, ListedCommand>> = {
  serve: {
    summary: "run the service",
    load: async () => (await import("./serve.js")).serve,
  },
  keygen: {
    summary: "make a signing key",
    load: async () => (await import("./keygen.js")).keygen,
  },
  attest: {
    summary: "sign files and have the signatures recorded",
    load: async () => (await import("./attest.js")).attest,
  },
  verify: {
    summary: "check files and their attestations offline",
    load: async () => (await import("./verify.js")).verify,
  },
  import: {
    summary: "begin a log with entries that were made elsewhere",
    load: async () => (await import("./import.js")).importLog,
  },
  export: {
    summary: "write the entries of a log to a file",
    load: async () => (await import("./export.js")).exportLog,
  },
  claim: {
    summary: "encrypt, decrypt, check, post and find claims",
    load: async () => (await import("./claim.js")).claim,
  },
  webhook: {
    summary: "subscribe to events; receive deliveries and check them",
    load: async () => (await import("./webhook.js")).webhook,
  },
  register: {
    summary: "register a key",
    load: async () => (await import("./register.js")).register,
  },
  login: {
    summary: "sign in and keep the session",
    load: async () => (await import("./login.js")).login,
  },
  succeed: {
    summary: "replace a key by a new one",
    load: async () => (await import("./succeed.js")).succeed,
  },
  revoke: {
    summary: "disable a key for ever",
    load: async () => (await import("./revoke.js")).revoke,
  },
  endorse: {
    summary: "endorsements: offer, accept, withdraw, list, warn",
    load: async () => (await import("./endorse.js")).endorse,
  },
  request: {
    summary: "ask another key for an attestation",
    load: async () => (await import("./request.js")).request,
  },
  respond: {
    summary: "accept or decline a request for an attestation",
    load: async () => (await import("./respond.js")).respond,
  },
  inbox: {
    summary: "what happened to your requests, and which you got",
    load: async () => (await import("./inbox.js")).inbox,
  },
  policy: {
    summary: "publish and show request policies",
    load: async () => (await import("./policy.js")).policy,
  },
  trust: {
    summary: "trust configurations and the graph of endorsements",
    load: async () => (await import("./trust.js")).trust,
  },
  keys: {
    summary: "list and show registered keys",
    load: async () => (await import("./keys.js")).keys,
  },
  log: {
    summary: "read the log, and check what is read",
    load: async () => (await import("./log.js")).log,
  },
  monitor: {
    summary: "follow a log, verify and mirror it, and raise an alarm when it lies",
    load: async () => (await import("./monitor.js")).monitor,
  },
  composite: {
    summary: "make one document of several files",
    load: async () => (await import("./composite.js")).composite,
  },
  password: {
    summary: "set or change the password of a key",
    load: async () => (await import("./password.js")).password,
  },
  account: {
    summary: "open an account, get it back, add keys to it",
    load: async () => (await import("./account.js")).account,
  },
  anchor: {
    summary: "anchor the log in Bitcoin, or see how far that is",
    load: async () => (await import("./anchor.js")).anchor,
  },
  bench: {
    summary: "measure signatures, disk and appends on this machine",
    load: async () => (await import("./bench.js")).bench,
  },
  completion: {
    summary: "print a completion script for your shell",
    load: async () => (await import("./completion.js")).completion(COMMANDS),
  },
  fsck: {
    summary: "check a data directory, and rebuild what can be",
    load: async () => (await import("./fsck.js")).fsck,
  },
  backup: {
    summary: "back up a data directory, also while the service runs",
    load: async () => (await import("./backup.js")).backup,
  },
  restore: {
    summary: "bring a log back from a backup",
    load: async () => (await import("./restore.js")).restore,
  },
};
