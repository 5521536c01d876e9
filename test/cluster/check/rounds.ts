/**
 * Rounds of load through all nodes while faults are done to nodes, servers and the ways between them. After each,
 * everything is mended, the log must go on, and the invariants of replication must hold for all that is there and all
 * that anybody was told.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../../reliability/random.js";
import { newManifest, newSigner, submission } from "../../server/signers.js";
import type { Node } from "../rig/node.js";
import { Rig } from "../rig/rig.js";
import { DATABASE } from "../servers/cluster.js";
import { Facts } from "./facts.js";
import { plannedFaults } from "./faults/all.js";
import type { Fault } from "./faults/fault.js";
import { Judge } from "./judge.js";
import { Load, patient } from "./load.js";
import { Readers } from "./readers.js";
import { refusedOf } from "./refused.js";

const WORKERS = 8;
/** Milliseconds of load before the first fault of a round, and after the last. */
const CALM_MS = [150, 500] as const;
/** Milliseconds in which a cluster that is mended must append again, and its nodes must be alike. */
const RECOVERY_MS = 120_000;
/** How often the operator asks until somebody is told that it is done, and how many leaders are killed meanwhile. */
const TRIES = 8;
const LEADERS_KILLED = 1;

export interface CheckOptions {
  readonly seed: number;
  readonly rounds: number;
  /** The build under test. */
  readonly dist: string;
  /** The only faults that are done; all if absent. */
  readonly faults?: readonly Fault[];
  readonly signal?: AbortSignal;
  /** Called after each round. */
  readonly progress?: (round: number) => void;
}

export interface CheckReport {
  readonly seed: number;
  rounds: number;
  /** Number of rounds by fault. */
  readonly faults: Record<string, number>;
  /** By fault: the longest time without an acknowledged append in any of its rounds, in milliseconds. */
  readonly gaps: Record<string, number>;
  /** Number of answers by kind. */
  answers: Record<string, number>;
  acknowledged: number;
  /** What clients and a monitor behind a balancer have finished. */
  balanced: Readers["finished"];
  records: number;
  epochs: number;
  /** Number of records that the journal refused. */
  refused: number;
  seconds: number;
  readonly problems: string[];
}

/** Runs the rounds with a cluster of their own. */
export async function check(options: CheckOptions): Promise<CheckReport> {
  const began = Date.now();
  const rig = await Rig.start({ dist: options.dist, hasLinks: true, hasClocks: true });
  try {
    const readers = await Readers.of(rig);
    try {
      const report = await new Rounds(rig, options, readers).run();
      report.seconds = Math.round((Date.now() - began) / 1000);
      return report;
    } finally {
      await readers.close();
    }
  } finally {
    await rig.remove();
  }
}

class Rounds {
  readonly #rig: Rig;
  readonly #options: CheckOptions;
  readonly #random: Random;
  readonly #facts = new Facts();
  readonly #load: Load;
  readonly #judge: Judge;
  readonly #readers: Readers;
  readonly #report: CheckReport;

  constructor(rig: Rig, options: CheckOptions, readers: Readers) {
    this.#rig = rig;
    this.#readers = readers;
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#load = new Load(rig.nodes, this.#facts);
    this.#judge = new Judge(rig, this.#facts);
    this.#report = {
      ...{ seed: options.seed, rounds: 0, faults: {}, gaps: {}, answers: {} },
      ...{ acknowledged: 0, balanced: readers.finished, records: 0, epochs: 0, refused: 0, seconds: 0, problems: [] },
    };
  }

  async run(): Promise<CheckReport> {
    const { rounds, signal, progress, faults } = this.#options;
    const { problems } = this.#report;
    const planned = plannedFaults(this.#random.fork(), faults);
    for (let round = 1; round <= rounds && !problems.length && !signal?.aborted; round++) {
      const chosen = planned.next().value;
      const name = chosen.map((fault) => fault.name).join(" + ");
      try {
        await this.#round(chosen);
        problems.push(...(await this.#judge.newFacts()));
      } catch (error) {
        // What is wrong with the records may be the reason.
        problems.push(...(await this.#judge.newRecords().catch(() => [])), (error as Error).stack ?? String(error));
      }
      problems.push(...this.#facts.problems.splice(0), ...this.#readers.problems.splice(0));
      problems.splice(
        0,
        Number.POSITIVE_INFINITY,
        ...problems.map((problem) => `round ${round} (${name}): ${problem}`),
      );
      this.#count(round, chosen, name);
      progress?.(round);
    }
    if (!problems.length) problems.push(...(await this.#end().catch((error: Error) => [`at its end: ${error.stack}`])));
    if (!problems.length)
      problems.push(...(await this.#judge.everything().catch((error: Error) => [`at the end: ${error.stack}`])));
    this.#total();
    return this.#report;
  }

  async #round(faults: readonly Fault[]): Promise<void> {
    const random = this.#random.fork();
    const leader = await this.#rig.leader();
    const follower = this.#rig.nodes.find((node) => node !== leader) ?? leader;
    const stop = new AbortController();
    // Every request that is under way listens.
    setMaxListeners(0, stop.signal);
    this.#facts.restartGap();
    const load = Promise.all([this.#load.work(WORKERS, random.fork(), stop.signal), this.#readers.work(stop.signal)]);
    try {
      await sleep(random.between(...CALM_MS));
      const scene = { rig: this.#rig, leader, follower };
      await Promise.all(faults.map((fault) => fault.run({ ...scene, random: random.fork() })));
      await sleep(random.between(...CALM_MS));
      await this.#rig.restore();
      await this.#goesOn();
    } finally {
      stop.abort();
      await load;
    }
    await this.#isQuiet();
  }

  /** The operator ends the log under load while leaders are killed. No node may append anything behind that. */
  async #end(): Promise<string[]> {
    const random = this.#random.fork();
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    this.#load.isEnding = true;
    const load = this.#load.work(WORKERS, random.fork(), stop.signal);
    let end: number;
    let withheld: string[];
    try {
      withheld = await this.#withheld(random, stop.signal);
      end = await this.#frozen(random);
      // The next leader has not ended the log itself.
      await (await this.#rig.leader()).kill();
      await this.#rig.restore();
      const client = patient(this.#rig.nodes, this.#facts, this.#options.seed, stop.signal);
      const reply = await client.insist("POST", "/attestations", submission(newSigner(), newManifest()));
      if (reply?.status !== 410) return [`invariant 11: ${reply?.by.name} answers ${reply?.status} behind the end`];
    } finally {
      stop.abort();
      await load;
    }
    await this.#isQuiet();
    const size = await this.#judge.sizeOfJournal();
    const problems = size === end ? [] : [`invariant 11: the log was ended at ${end} entries, and has ${size}`];
    return [...withheld, ...problems, ...(await this.#judge.newFacts()), ...this.#facts.problems.splice(0)];
  }

  /** The operator withholds a payload while a leader is killed. No node shows it then, and the journal loses it. */
  async #withheld(random: Random, signal: AbortSignal): Promise<string[]> {
    const client = patient(this.#rig.nodes, this.#facts, this.#options.seed, signal);
    const title = "Zwetschgenkuchen";
    const attested = await client.insist("POST", "/attestations", submission(newSigner(), newManifest(title)));
    const { log_entry_id: id } = attested!.body;
    const asked = ["operator", "withhold", `${id}`, "--reason", "An order."];
    await this.#done(random, asked, (said) => /withholds what|is withheld by/.test(said) || null);
    const isShown = async (node: Node) => (await node.ask(`/api/v1/log/${id}`))?.body?.payload !== null;
    const journal = `SELECT count(*) FROM cairnlog.record WHERE position('${title}'::bytea in body) > 0`;
    for (const until = Date.now() + RECOVERY_MS; ; await sleep(100)) {
      const showing = await Promise.all(this.#rig.nodes.map(isShown));
      const [[count]] = (await this.#rig.cluster.primary.query(journal, DATABASE)) as [[string]];
      if (count === "0" && !showing.includes(true)) return [];
      if (Date.now() > until)
        return [`invariant 12: entry ${id} was withheld, is shown by nodes: ${showing}, and in ${count} records`];
    }
  }

  /** Has the log ended. @returns its size */
  #frozen(random: Random): Promise<number> {
    return this.#done(random, ["operator", "freeze", "--reason", "It is full.", "--json"], (said) => {
      const size = /"tree_size":(\d+)/.exec(said)?.[1];
      return size === undefined ? null : Number(size);
    });
  }

  /**
   * Has a command of the operator done, however often that takes: the first leader that is asked is killed meanwhile.
   * @param read what it wants of what the command says; null if it was not done
   */
  async #done<T>(random: Random, args: readonly string[], read: (said: string) => T | null): Promise<T> {
    let why = "";
    for (let tries = 0; tries < TRIES; tries++) {
      const leader = await this.#rig.leader();
      const doing = this.#rig.command(leader, [...args, "--server", leader.url]).then(read, (error: Error) => {
        why = error.message;
        return read(why);
      });
      if (tries < LEADERS_KILLED) {
        await Promise.race([doing, sleep(random.between(300, 1_500))]);
        await leader.kill();
      }
      const done = await doing;
      await this.#rig.restore();
      if (done !== null) return done;
    }
    throw new Error(`${args.join(" ")} does not succeed: ${why}`);
  }

  /** An append must be acknowledged again. */
  async #goesOn(): Promise<void> {
    const signal = AbortSignal.timeout(RECOVERY_MS);
    const client = patient(this.#rig.nodes, this.#facts, this.#options.seed, signal);
    const receipt = await this.#load.send(client, submission(newSigner(), newManifest()));
    if (!receipt) throw new Error(`Nothing is appended though everything is mended.\n${this.#lastWords()}`);
  }

  /** Every node must show the newest head, and no other. */
  async #isQuiet(): Promise<void> {
    const sizeOf = async (node: Node) => (await node.ask("/api/v1/log/sth"))?.body?.tree_size as number | undefined;
    for (const until = Date.now() + RECOVERY_MS; ; await sleep(50)) {
      const sizes = await Promise.all(this.#rig.nodes.map(sizeOf));
      const journal = await this.#judge.sizeOfJournal();
      if (sizes.every((size) => size === journal)) return;
      if (Date.now() > until)
        throw new Error(`The nodes show ${sizes.join(" and ")} entries of ${journal}.\n${this.#lastWords()}`);
    }
  }

  #lastWords(): string {
    return this.#rig.nodes.map((node) => `${node.name}:\n${node.lastWords()}`).join("\n");
  }

  #count(round: number, faults: readonly Fault[], name: string): void {
    const report = this.#report;
    report.rounds = round;
    for (const fault of faults) report.faults[fault.name] = (report.faults[fault.name] ?? 0) + 1;
    report.gaps[name] = Math.round(Math.max(report.gaps[name] ?? 0, this.#facts.longestGap));
  }

  /** What all rounds and the end of the log came to. */
  #total(): void {
    const report = this.#report;
    report.answers = Object.fromEntries(this.#load.answers);
    report.acknowledged = this.#facts.receipts.size;
    report.refused = refusedOf(this.#rig.tap.proposals).length;
    ({ records: report.records, epochs: report.epochs } = this.#judge);
  }
}
