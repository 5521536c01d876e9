/**
 * Rounds of SIGKILL on one data directory: under load, while the service starts, while it stops. After each round,
 * every acknowledged change must be there completely, and the history of earlier rounds unchanged.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mainOf } from "../reliability/planted.js";
import { Random } from "../reliability/random.js";
import { newSigner } from "../server/signers.js";
import { type RunningService, scratchFolder, startService } from "../service.js";
import { Memory, Monitor } from "./checks.js";
import { Connection, CutOff } from "./connection.js";
import { Ledger } from "./ledger.js";
import { Crew, operatorSigner, type Scene, subscribeTo, subscriptionOf } from "./load.js";
import { Outside } from "./outside.js";

const WORKERS = 8;
/** Number of rounds after which actors are replaced, because their inboxes fill and their sessions end. */
const CREW_ROUNDS = 8;
/**
 * Time limit for the webhook to receive everything, once nothing is killed any more. The outbox decides when an attempt
 * is repeated: at once, unless one has failed. No attempt should fail: every service of every round may call the
 * endpoint, which answers each call in half the time that an attempt may take, and a call that SIGKILL or a stop cuts
 * short is not recorded. On a very slow machine two calls in a row may still time out. The limit allows for their
 * delays of 5 s and 30 s.
 */
const DELIVERY_MS = 120_000;

export interface CrashOptions {
  readonly seed: number;
  readonly rounds: number;
  /** The build under test. */
  readonly dist: string;
  /** Called after each round. */
  readonly progress?: (round: number, report: CrashReport) => void;
  /** Stops after the current round. */
  readonly signal?: AbortSignal;
}

export interface CrashReport {
  readonly seed: number;
  rounds: number;
  /** Number of rounds by the moment of the kill. */
  readonly killed: Record<Moment, number>;
  entries: number;
  acknowledged: number;
  requests: number;
  /** Acknowledged writes by route. */
  writes: Record<string, number>;
  delivered: number;
  readonly problems: string[];
}

export type Moment = "under load" | "while starting" | "while stopping";

export async function crash(options: CrashOptions): Promise<CrashReport> {
  const folder = scratchFolder();
  const outside = await Outside.open();
  try {
    return await new Crash(options, folder.path, outside).run();
  } finally {
    await outside.close();
    folder.remove();
  }
}

class Crash {
  readonly #options: CrashOptions;
  readonly #dataDir: string;
  readonly #outside: Outside;
  readonly #random: Random;
  readonly #ledger: Ledger;
  readonly #memory = new Memory();
  readonly #scene: Scene;
  readonly #crew: Crew;
  readonly #report: CrashReport;
  #monitor: Monitor | null = null;

  constructor(options: CrashOptions, dataDir: string, outside: Outside) {
    this.#options = options;
    this.#dataDir = dataDir;
    this.#outside = outside;
    this.#ledger = new Ledger(outside.delivered);
    this.#random = new Random(options.seed);
    const hookUrl = `${outside.url}/hook`;
    this.#scene = { ledger: this.#ledger, watched: newSigner(), submitted: [], hookUrl, operator: null };
    this.#crew = new Crew(this.#scene, WORKERS);
    this.#report = {
      seed: options.seed,
      rounds: 0,
      killed: { "under load": 0, "while starting": 0, "while stopping": 0 },
      entries: 0,
      acknowledged: 0,
      requests: 0,
      writes: {},
      delivered: 0,
      problems: [],
    };
  }

  async run(): Promise<CrashReport> {
    const { rounds, progress, signal } = this.#options;
    const { problems } = this.#report;
    for (let round = 0; round < rounds && !problems.length && !signal?.aborted; round++) {
      try {
        await this.#round(round);
        problems.push(...(await this.#checkDisk(round === rounds - 1)));
      } catch (error) {
        problems.push(`round ${round}: ${(error as Error).stack}`);
      }
      this.#count(round + 1);
      progress?.(round + 1, this.#report);
    }
    if (!problems.length) await this.#finish().catch((error: Error) => problems.push(`at the end: ${error.stack}`));
    if (!problems.length) problems.push(...(await this.#checkDisk(true)));
    return this.#report;
  }

  #checkDisk(isThorough: boolean): Promise<string[]> {
    return this.#memory.checkDisk(this.#dataDir, this.#ledger, this.#random, isThorough);
  }

  async #round(round: number): Promise<void> {
    const random = this.#random;
    const moment: Moment =
      round && random.chance(0.1) ? "while starting" : random.chance(0.1) ? "while stopping" : "under load";
    this.#report.killed[moment]++;
    if (moment === "while starting") return this.#killStarting(random.between(20, 700));
    const service = await this.#start();
    try {
      const connection = await this.#prepare(service);
      if (round) this.#report.problems.push(...(await this.#monitor!.check(connection, this.#ledger, random)));
      if (round % CREW_ROUNDS === 0) this.#crew.renew();
      // In every third round deliveries wait for their answer, so that a later service has to repeat most of them.
      this.#outside.answers = !random.chance(1 / 3);
      let isOver = false;
      const load = this.#crew.work(connection, random.fork()).finally(() => {
        isOver = true;
      });
      // Requests are counted besides time, so that a slow machine is not killed before it has done anything.
      const enough = connection.answered + random.between(30, 300);
      // A worker that finds a fault ends the round. The kill then ends the others.
      const killed = sleep(random.between(50, 400)).then(async () => {
        while (connection.answered < enough && !isOver) await sleep(2);
        if (moment === "while stopping") {
          connection.isStopping = true;
          service.process.kill("SIGTERM");
          await sleep(random.between(0, 60));
        }
        await kill(service.process);
      });
      await Promise.all([load, killed]);
      this.#report.requests += connection.answered;
    } finally {
      await kill(service.process);
    }
  }

  /**
   * Starts the service, always with the same settings, even if it is killed before it listens. Deliveries begin
   * earlier. A service that may not call this machine would refuse its endpoint ten times within a moment, and then
   * wait for an hour.
   */
  #start(started?: (child: ChildProcess) => void): Promise<RunningService> {
    const environment = {
      LOG_LEVEL: "fatal",
      SERVICE_WEBHOOK_ALLOW_PRIVATE: "on",
      SERVICE_OTS_CALENDARS: this.#outside.url,
    };
    const main = mainOf(this.#options.dist);
    const withheld = [...this.#ledger.withheld];
    const starting = startService(this.#dataDir, environment, { main, ...(started && { started }) });
    return starting.then((service) => {
      this.#ledger.erased = withheld;
      return service;
    });
  }

  /** Connects to the service. The first connection also creates the data that is made only once. */
  async #prepare(service: RunningService): Promise<Connection> {
    const connection = new Connection(service.url, this.#ledger);
    if (this.#scene.operator) return connection;
    const file = (name: string) => readFileSync(join(this.#dataDir, name), "utf8");
    this.#scene.operator = operatorSigner(file("operator.pem"));
    this.#monitor = new Monitor(file("operator.pub.pem"));
    await subscribeTo(this.#scene, connection);
    return connection;
  }

  async #killStarting(milliseconds: number): Promise<void> {
    let child: ChildProcess | undefined;
    const starting = this.#start((process) => {
      child = process;
    }).catch(() => null);
    await sleep(milliseconds);
    await kill(child!);
    await starting;
  }

  /** The operator ends the log under load, and the service is killed at that moment, until the end is on disk. */
  async #freeze(): Promise<void> {
    const random = this.#random;
    const service = await this.#start();
    try {
      const connection = await this.#prepare(service);
      const token = await connection.login(this.#scene.operator!);
      const load = this.#crew.work(connection, random.fork());
      const enough = connection.answered + random.between(30, 100);
      while (connection.answered < enough) await Promise.race([sleep(2), load]);
      connection.isEnding = true;
      const freezing = this.#end(connection, token);
      await (random.chance(0.5) ? sleep(random.between(0, 20)) : freezing);
      await kill(service.process);
      await Promise.all([load, freezing]);
    } finally {
      await kill(service.process);
    }
  }

  async #end(connection: Connection, token: string): Promise<void> {
    try {
      const receipt = await connection.send("/log/freeze", { reason: "It is full." }, { token });
      this.#ledger.add(receipt, { reason: "It is full." });
      this.#ledger.end = receipt.log_entry_id;
    } catch (error) {
      if (!(error instanceof CutOff)) throw error;
    }
  }

  /** Ends the log, starts the service once more, and tries to write. It then delivers everything and stops normally. */
  async #finish(): Promise<void> {
    const { problems } = this.#report;
    while (!this.#memory.hasEnded) {
      await this.#freeze();
      problems.push(...(await this.#checkDisk(false)));
      if (problems.length) return;
    }
    this.#outside.answers = true;
    const service = await this.#start();
    try {
      const connection = await this.#prepare(service);
      problems.push(...(await this.#monitor!.check(connection, this.#ledger, this.#random)));
      connection.isEnding = true;
      await this.#crew.work(connection, this.#random.fork());
      const missing = () => this.#ledger.told.filter((id) => !this.#outside.delivered.has(id));
      for (const until = Date.now() + DELIVERY_MS; missing().length && Date.now() < until; ) await sleep(50);
      for (const id of missing().slice(0, 5)) problems.push(`the webhook was never told of entry ${id}`);
      if (missing().length) problems.push(`its subscription: ${await subscriptionOf(this.#scene, connection)}`);
      const exitCode = await service.stop();
      if (exitCode !== 0) problems.push(`the service stopped with exit code ${exitCode}`);
    } finally {
      await kill(service.process);
    }
    this.#count(this.#report.rounds);
  }

  #count(rounds: number): void {
    const report = this.#report;
    report.rounds = rounds;
    report.entries = this.#memory.entries;
    report.acknowledged = this.#ledger.entries.length;
    report.delivered = this.#outside.delivered.size;
    report.writes = Object.fromEntries([...this.#ledger.writes].sort());
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
