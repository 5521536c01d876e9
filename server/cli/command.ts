/** The `cairnlog` command: finds the subcommand, runs it, turns what went wrong into a sentence and an exit code. */
import { CairnlogError } from "../../engine/error.js";
import { ClientError } from "../client/error.js";
import { VERSION } from "../version.js";
import { ServiceError } from "./service.js";
import { printable } from "./terminal.js";
import { type Subcommand, UsageError } from "./usage.js";

/** Name → subcommand, loaded when it is wanted. */
const COMMANDS: Readonly<Record<string, () => Promise<Subcommand>>> = {
  serve: async () => (await import("./serve.js")).serve,
  keygen: async () => (await import("./keygen.js")).keygen,
  attest: async () => (await import("./attest.js")).attest,
  verify: async () => (await import("./verify.js")).verify,
  import: async () => (await import("./import.js")).importLog,
  export: async () => (await import("./export.js")).exportLog,
  claim: async () => (await import("./claim.js")).claim,
  webhook: async () => (await import("./webhook.js")).webhook,
  register: async () => (await import("./register.js")).register,
  login: async () => (await import("./login.js")).login,
  succeed: async () => (await import("./succeed.js")).succeed,
  revoke: async () => (await import("./revoke.js")).revoke,
  endorse: async () => (await import("./endorse.js")).endorse,
  request: async () => (await import("./request.js")).request,
  respond: async () => (await import("./respond.js")).respond,
  inbox: async () => (await import("./inbox.js")).inbox,
  policy: async () => (await import("./policy.js")).policy,
  trust: async () => (await import("./trust.js")).trust,
  keys: async () => (await import("./keys.js")).keys,
  log: async () => (await import("./log.js")).log,
  monitor: async () => (await import("./monitor.js")).monitor,
  composite: async () => (await import("./composite.js")).composite,
  password: async () => (await import("./password.js")).password,
  account: async () => (await import("./account.js")).account,
  anchor: async () => (await import("./anchor.js")).anchor,
  bench: async () => (await import("./bench.js")).bench,
  completion: async () => (await import("./completion.js")).completion(COMMANDS),
  fsck: async () => (await import("./fsck.js")).fsck,
  backup: async () => (await import("./backup.js")).backup,
  restore: async () => (await import("./restore.js")).restore,
};

/**
 * Runs the command with these arguments. Errors become a sentence on stderr.
 * @returns the exit code: that of the subcommand, 1 for an error, 2 for a command line that is not understood
 */
export async function runCommand(argv: readonly string[]): Promise<number> {
  try {
    return await dispatch(argv);
  } catch (error) {
    console.error(`cairnlog: ${explain(error, argv[0])}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function dispatch([name, ...argv]: readonly string[]): Promise<number> {
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
