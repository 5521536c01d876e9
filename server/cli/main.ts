#!/usr/bin/env node
/** The `cairnlog` command: finds the subcommand, runs it, turns what went wrong into a sentence and an exit code. */
import { CairnlogError } from "../../engine/error.js";
import { ClientError } from "../client/error.js";
import { VERSION } from "../version.js";
import { ServiceError } from "./service.js";
import { printable } from "./terminal.js";
import { type Subcommand, UsageError } from "./usage.js";

/** Name → subcommand, loaded when it is wanted. */
const COMMANDS: Readonly<Record<string, () => Promise<Subcommand>>> = {
  serve: async () => (await import("./operate/serve.js")).serve,
  keygen: async () => (await import("./identity/keygen.js")).keygen,
  attest: async () => (await import("./signing/attest.js")).attest,
  verify: async () => (await import("./signing/verify.js")).verify,
  import: async () => (await import("./operate/import.js")).importLog,
  export: async () => (await import("./log/export.js")).exportLog,
  claim: async () => (await import("./signing/claim.js")).claim,
  webhook: async () => (await import("./log/webhook.js")).webhook,
  register: async () => (await import("./identity/register.js")).register,
  login: async () => (await import("./identity/login.js")).login,
  succeed: async () => (await import("./identity/succeed.js")).succeed,
  revoke: async () => (await import("./identity/revoke.js")).revoke,
  endorse: async () => (await import("./signing/endorse.js")).endorse,
  request: async () => (await import("./signing/request.js")).request,
  respond: async () => (await import("./signing/respond.js")).respond,
  inbox: async () => (await import("./signing/inbox.js")).inbox,
  policy: async () => (await import("./signing/policy.js")).policy,
  trust: async () => (await import("./signing/trust.js")).trust,
  keys: async () => (await import("./identity/keys.js")).keys,
  log: async () => (await import("./log/log.js")).log,
  monitor: async () => (await import("./log/monitor.js")).monitor,
  composite: async () => (await import("./signing/composite.js")).composite,
  password: async () => (await import("./identity/password.js")).password,
  account: async () => (await import("./identity/account.js")).account,
  anchor: async () => (await import("./log/anchor.js")).anchor,
  bench: async () => (await import("./operate/bench.js")).bench,
  completion: async () => (await import("./completion.js")).completion(COMMANDS),
  fsck: async () => (await import("./operate/fsck.js")).fsck,
  backup: async () => (await import("./operate/backup.js")).backup,
  restore: async () => (await import("./operate/restore.js")).restore,
};

async function main([name, ...argv]: readonly string[]): Promise<number> {
  if (name === "--version") return say(VERSION);
  if (name === undefined || name === "--help" || name === "-h")
    return say(await overview(), name === undefined ? 2 : 0);
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!load) throw new UsageError(`there is no command ${name}`);
  const command = await load();
  if (argv.includes("--help") || argv.includes("-h")) return say(command.help);
  return command.run(argv);
}

function say(text: string, exitCode = 0): number {
  console.log(text);
  return exitCode;
}

async function overview(): Promise<string> {
  const names = Object.keys(COMMANDS);
  const width = Math.max(...names.map((name) => name.length));
  const lines = names.map(async (name) => `  ${name.padEnd(width)}  ${(await COMMANDS[name]!()).summary}`);
  return `cairnlog COMMAND [OPTIONS]

Commands:
${(await Promise.all(lines)).join("\n")}

cairnlog COMMAND --help says more of each; cairnlog --version says which version this is.`;
}

/** What is told of an error: a sentence where the cause lies outside of the program, otherwise all there is. */
function explain(error: unknown, name: string | undefined): string {
  if (error instanceof UsageError) {
    const known = name !== undefined && Object.hasOwn(COMMANDS, name);
    return `${error.message}\nTry: cairnlog ${known ? `${name} ` : ""}--help`;
  }
  if (error instanceof ClientError) return refusal(error);
  const isExpected = error instanceof CairnlogError || error instanceof ServiceError;
  if (isExpected || (error instanceof Error && "syscall" in error)) return printable((error as Error).message);
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** The service wrote most of it. */
function refusal({ message, errors }: ClientError): string {
  const members = errors.map(({ path, message: fault }) => `  ${path}: ${fault}`);
  return printable([message, ...members].join("\n"));
}

const argv = process.argv.slice(2);
try {
  process.exitCode = await main(argv);
} catch (error) {
  console.error(`cairnlog: ${explain(error, argv[0])}`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
