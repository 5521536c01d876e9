/**
 * One round: a service meets one failing system call, then a service without faults is started on what it left. Every
 * promise that was broken on the way is a sentence.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { checkFiles } from "#cairnlog/engine/log/check/files.js";
import { FAILED_EXIT_CODE } from "#cairnlog/server/failure.js";
import { Memory } from "../crash/checks.js";
import { operatorSigner } from "../crash/load.js";
import { check } from "../fsck/everykind.js";
import type { Random } from "../reliability/random.js";
import { type Actor, Client, Facts } from "./client.js";
import { type Case, describe, nameOf } from "./plan.js";
import { type End, PATIENCE_MS, ServiceProcess } from "./process.js";
import { type Call, Injector } from "./shim.js";

export type Outcome =
  /** The service did not make the call so often. */
  | "not reached"
  /** Nobody was refused anything. */
  | "no effect"
  /** Some requests were refused with 503, and later ones were not. */
  | "refused, went on"
  | "exit code 74"
  /** A sentence and exit code 1, before it listened. */
  | "did not start"
  /** A sentence and an exit code, when it was told to stop. */
  | "stopped with a sentence"
  /** The same, after a failed page write whose message was not shortened: docs/reliability.md, "Faults of lmdb". */
  | "exit code 74, SIGABRT of lmdb named"
  /** The same, because LMDB could not open an environment: docs/reliability.md, "Faults of lmdb". */
  | "exit code 74, failed opening of lmdb named"
  | "wrong";

export interface RoundReport {
  readonly outcome: Outcome;
  /** Codes of refusals. */
  readonly codes: readonly string[];
  readonly problems: readonly string[];
  readonly acknowledged: number;
}

/** A stopped data directory, and what was promised about it. */
export interface Template {
  readonly dataDir: string;
  readonly facts: Facts;
}

export interface World {
  readonly dist: string;
  readonly library: string;
  readonly template: Template;
  readonly random: Random;
  /** For the files of a round. */
  readonly folder: string;
}

const ERASING_PUT_OFF = '"msg":"withheld payloads stay on the disk"';
const STACK = /^\s+at .+:\d+:\d+\)?$/m;
const isPageWrite = ({ call, path, hasFailed }: Call): boolean =>
  hasFailed && path.endsWith("data.mdb") && (call === "pwrite64@lmdb" || call === "writev@lmdb");
/** Calls of LMDB while it opens an environment. */
const OPENING = new Set(["open", "create", "lock", "ftruncate64", "mmap64", "pread64", "pwrite64"]);
const isOpening = ({ call, hasFailed }: Call): boolean =>
  hasFailed && call.endsWith("@lmdb") && OPENING.has(nameOf(call));

/** How a process ends that uses memory which it has freed, or frees it again. */
const OF_FREED_MEMORY: ReadonlySet<string> = new Set(["SIGSEGV", "SIGABRT", "SIGFPE"]);

export async function runRound(world: World, one: Case): Promise<RoundReport> {
  const folder = mkdtempSync(join(world.folder, "round-"));
  const round = new Round(world, one, folder);
  try {
    return await round.run();
  } finally {
    await round.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Round {
  readonly #world: World;
  readonly #case: Case;
  readonly #dataDir: string;
  readonly #facts: Facts;
  readonly #injector: Injector;
  readonly #problems: string[] = [];
  readonly #codes = new Set<string>();
  #service: ServiceProcess | undefined;
  #acknowledged = 0;

  constructor(world: World, one: Case, folder: string) {
    this.#world = world;
    this.#case = one;
    this.#dataDir = join(folder, "data");
    const isNew = one.phase === "create";
    if (!isNew) cpSync(world.template.dataDir, this.#dataDir, { recursive: true });
    this.#facts = isNew ? new Facts() : world.template.facts.copy();
    this.#injector = new Injector(world.library, folder, this.#dataDir);
  }

  async close(): Promise<void> {
    await this.#service?.kill();
    this.#injector.close();
  }

  async run(): Promise<RoundReport> {
    let outcome = await this.#meetFault();
    const { injected } = this.#injector;
    if (!injected && outcome !== "wrong") outcome = "not reached";
    if (injected && outcome === "no effect" && mustBeHeeded(this.#case) && !this.#putsOffErasing())
      this.#problems.push("the error was ignored: nobody was refused anything");
    if (injected && outcome === "refused, went on" && this.#case.phase !== "stop" && endsAll(this.#case))
      this.#problems.push("it went on after a write of LMDB that failed");
    await this.#checkAfterwards();
    if (this.#problems.length) outcome = "wrong";
    const name = describe(this.#case);
    return {
      outcome,
      codes: [...this.#codes],
      problems: this.#problems.map((problem) => `${name}: ${problem}`),
      acknowledged: this.#acknowledged,
    };
  }

  async #meetFault(): Promise<Outcome> {
    const { phase } = this.#case;
    if (phase === "create" || phase === "start") this.#injector.arm(this.#case);
    const service = new ServiceProcess(this.#world.dist, this.#dataDir, this.#injector.environment);
    this.#service = service;
    const url = await within(service.listening);
    if (url === undefined) return this.#wrong("it neither listens nor ends");
    if (url === null) {
      return this.#judgeEnd(await service.end(), { 1: "did not start" });
    }
    const client = new Client(url, this.#facts);
    const outcome = await this.#load(client, service);
    for (const code of client.refusals) this.#codes.add(code);
    this.#problems.push(...new Set(client.problems));
    this.#acknowledged += client.acknowledged;
    return outcome;
  }

  async #load(client: Client, service: ServiceProcess): Promise<Outcome> {
    const { phase } = this.#case;
    const actor: Actor | null = await client.actor();
    if (!actor && !["create", "start"].includes(phase)) return this.#wrong("a service without faults refuses");
    if (phase === "load") this.#injector.arm(this.#case);
    if (actor) await client.work(actor);
    if (phase === "end") {
      const token = await client.login(operatorIn(this.#dataDir));
      if (token === null) return this.#wrong("a service without faults refuses its operator");
      this.#injector.arm(this.#case);
      await client.end(token);
    }
    await client.probe();
    const ends = { [FAILED_EXIT_CODE]: "exit code 74" } as const;
    if ((await client.isAlive()) !== true) return this.#judgeEnd(await service.end(), ends);
    if (phase !== "stop") this.#injector.disarm();
    if (!(await client.goesOn())) {
      if (service.isOver || (await client.isAlive()) !== true) return this.#judgeEnd(await service.end(), ends);
      return this.#wrong("appends do not work again when the fault is over");
    }
    if (client.cut) this.#problems.push(`${client.cut} connections were closed by a service that went on`);
    if (phase === "stop") this.#injector.arm(this.#case);
    const end = await service.stop();
    const went = client.refusals.size ? "refused, went on" : "no effect";
    if (phase !== "stop") return this.#judgeEnd(end, { 0: went });
    return this.#judgeEnd(end, { 0: went, 1: "stopped with a sentence", [FAILED_EXIT_CODE]: "exit code 74" });
  }

  #wrong(problem: string): Outcome {
    this.#problems.push(problem);
    return "wrong";
  }

  /** @param allowed what each exit code means that is right here */
  #judgeEnd(end: End | null, allowed: Readonly<Record<number, Outcome>>): Outcome {
    const { stderr } = this.#service!;
    if (!end) return this.#wrong("the process did not end");
    const { code, signal } = end;
    const outcome = this.#namedSignal(code) ?? (code === null ? undefined : allowed[code]);
    if (!outcome) return this.#wrong(`it ended with ${signal ?? `exit code ${code}`}: ${stderr.slice(0, 400)}`);
    if (STACK.test(stderr)) this.#problems.push(`it printed a stack: ${stderr.slice(0, 600)}`);
    if (code !== 0 && !stderr.includes("cairnlog: ")) this.#problems.push(`it did not say why it ended: ${stderr}`);
    if (code === FAILED_EXIT_CODE && !this.#case.lasts && !existsSync(join(this.#dataDir, "failure.json")))
      this.#problems.push("it left no failure.json");
    return outcome;
  }

  /** Where there is no room to make the log anew without withheld payloads, a service starts with them, and says so. */
  #putsOffErasing(): boolean {
    const { error } = this.#case;
    return (error === "ENOSPC" || error === "EDQUOT") && this.#service!.stderr.includes(ERASING_PUT_OFF);
  }

  /** The fault of lmdb that has ended the service by a signal, if its parent has named it. */
  #namedSignal(code: number | null): Outcome | undefined {
    if (code !== FAILED_EXIT_CODE) return undefined;
    const [, named] = /^cairnlog: The service was ended by (SIG[A-Z]+) /m.exec(this.#service!.stderr) ?? [];
    const calls = this.#injector.calls();
    if (named === "SIGABRT" && calls.some(isPageWrite)) return "exit code 74, SIGABRT of lmdb named";
    if (OF_FREED_MEMORY.has(named!) && calls.some(isOpening)) return "exit code 74, failed opening of lmdb named";
    if (named !== undefined) this.#problems.push(`it was ended by ${named}`);
    return undefined;
  }

  /** The fault is over: the files, a start, all that was promised, and the log as its owner checks it. */
  async #checkAfterwards(): Promise<void> {
    await this.#service!.kill();
    const problems = this.#problems;
    const { dist, random } = this.#world;
    const log = join(this.#dataDir, "log");
    if (existsSync(log)) for (const { message } of checkFiles(log).differences) problems.push(`the files: ${message}`);
    this.#service = new ServiceProcess(dist, this.#dataDir);
    const url = await within(this.#service.listening);
    if (!url) {
      problems.push(`it does not start again: ${this.#service.stderr.slice(0, 400)}`);
      return;
    }
    const { ledger } = this.#facts;
    ledger.erased = [...ledger.withheld];
    const client = new Client(url, this.#facts);
    client.mayHaveEnded = this.#case.phase === "end";
    await client.readAll();
    if (!(await client.goesOn())) client.problems.push("appends do not work");
    if ((await client.isAlive()) !== true || client.refusals.size) client.problems.push("it is not well");
    const end = await this.#service.stop();
    if (end?.code !== 0) client.problems.push(`it stopped with ${JSON.stringify(end)}`);
    problems.push(...client.problems.map((problem) => `after a restart: ${problem}`));
    problems.push(...(await new Memory().checkDisk(this.#dataDir, ledger, random, true)));
    // Its worker keeps the files of a log open, so it is made anew for each.
    const pool = createPool(1);
    const { differences } = await check(this.#dataDir, pool).finally(() => pool.close());
    for (const { message } of differences) problems.push(`fsck: ${message}`);
  }
}

/** The operator of the log in a data directory. */
export const operatorIn = (dataDir: string) => operatorSigner(readFileSync(join(dataDir, "operator.pem"), "utf8"));

/** Undefined when it takes so long that nobody would wait. */
function within<T>(work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => resolve(undefined), PATIENCE_MS);
    work.finally(() => clearTimeout(late)).then(resolve, reject);
  });
}

/** Whether a write of LMDB failed, after which the process must not use the log any more. */
function endsAll({ call, path, error }: Case): boolean {
  // LMDB repeats what was interrupted, but not a flush.
  const isWrite = error !== "EINTR" && ["pwrite64@lmdb", "writev@lmdb"].includes(call);
  return (isWrite || call === "fdatasync@lmdb") && (path === "log/data.mdb" || path === "log/postings/data.mdb");
}

/** Files of which a start must know what is in them, or end. */
const READ_AT_START = new Set(["operator.pem", "published.json", "tlog-checkpoint.txt", "log/data.mdb"]);

/** Whether a service that goes on as if nothing had happened does not know what is on disk. */
function mustBeHeeded(one: Case): boolean {
  const { phase, call, path, error, nth } = one;
  if (endsAll(one)) return true;
  if (error === "EINTR") return false;
  const isRead = ["open", "read", "pread64"].includes(nameOf(call));
  // A checkpoint whose flush failed is not shown, and the next one is tried a second later: appends go on.
  const isCheckpoint = path === "tlog-checkpoint.txt.new" || (path === "." && (phase !== "create" || nth > 1));
  // The file is read before LMDB opens it. Later reads look for places of entries, and LMDB reads what they do not find. It
  // is opened twice before: to read it, and to try what LMDB will do.
  const isOfPlaces = path === "log/data.mdb" && nth > (nameOf(call) === "open" ? 2 : 3);
  return (
    (call === "fsync@node" && !isCheckpoint) ||
    (phase === "start" && call.endsWith("@node") && isRead && READ_AT_START.has(path) && !isOfPlaces)
  );
}
