/** Rounds of failing system calls, and what the service did in them. */
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DIST } from "../reliability/planted.js";
import { Random } from "../reliability/random.js";
import { scratchFolder } from "../service.js";
import { Client, Facts } from "./client.js";
import { type Case, casesOf, isChosen, nameOf, type Phase, type Profile } from "./plan.js";
import { ServiceProcess } from "./process.js";
import { type Outcome, operatorIn, runRound, type Template, type World } from "./round.js";
import { type Call, compileShim, Injector } from "./shim.js";

export interface FaultsOptions {
  readonly seed: number;
  /** Most rounds; all cases are some thousand. */
  readonly rounds: number;
  /** The build that is tested. */
  readonly dist: string;
  /** As `isChosen` reads it. */
  readonly only?: string | undefined;
  /** Cases to run instead of those that the seed chooses. */
  readonly chosen?: (cases: readonly Case[]) => readonly Case[];
  readonly progress?: (round: number, rounds: number, report: FaultsReport) => void;
  /** Stops after the round that is under way. */
  readonly signal?: AbortSignal;
  /** Ends with the first round that has a problem. */
  readonly endsEarly?: boolean;
}

/** How often the service did what, for a call and an error. */
export type Row = Partial<Record<Outcome, number>>;

export interface FaultsReport {
  readonly seed: number;
  /** Cases there are. */
  cases: number;
  rounds: number;
  acknowledged: number;
  readonly outcomes: Row;
  /** By phase, call with its caller, and error. */
  readonly table: Record<string, Row>;
  /** Codes of refusals, by call and error. */
  readonly codes: Record<string, string[]>;
  readonly problems: string[];
}

/** What all runs begin with: the data directory to copy, and the calls that a service makes that meets no fault. */
export interface Stage {
  readonly library: string;
  readonly template: Template;
  readonly profile: Profile;
  /** For the files of rounds. */
  readonly folder: string;
}

/** Prepares a stage with the build under test, and removes it afterwards. */
export async function withStage<T>(work: (stage: Stage) => Promise<T>): Promise<T> {
  const folder = scratchFolder();
  try {
    const library = compileShim(folder.path);
    return await work({ library, folder: folder.path, ...(await prepare(DIST, library, folder.path)) });
  } finally {
    folder.remove();
  }
}

export async function faults({ profile, ...stage }: Stage, options: FaultsOptions): Promise<FaultsReport> {
  const { seed, progress, signal, only, dist } = options;
  const report: FaultsReport = {
    seed,
    cases: 0,
    rounds: 0,
    acknowledged: 0,
    outcomes: {},
    table: {},
    codes: {},
    problems: [],
  };
  const random = new Random(seed);
  const world: World = { ...stage, dist, random };
  const all = casesOf(profile, random).filter((one) => only === undefined || isChosen(one, only));
  const cases = options.chosen ? options.chosen(all) : all.slice(0, options.rounds);
  report.cases = all.length;
  for (const one of cases) {
    if (signal?.aborted || (options.endsEarly && report.problems.length)) break;
    const { outcome, codes, problems, acknowledged } = await runRound(world, one);
    report.rounds++;
    report.acknowledged += acknowledged;
    report.problems.push(...problems);
    count(report, one, outcome, codes);
    progress?.(report.rounds, cases.length, report);
  }
  return report;
}

function count(report: FaultsReport, { phase, call, error }: Case, outcome: Outcome, codes: readonly string[]): void {
  const name = `${phase} ${call} ${error}`;
  report.table[name] ??= {};
  const row = report.table[name];
  row[outcome] = (row[outcome] ?? 0) + 1;
  report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + 1;
  const key = `${nameOf(call)} ${error}`;
  if (codes.length) report.codes[key] = [...new Set([...(report.codes[key] ?? []), ...codes])].sort();
}

/** A data directory to copy, and the calls that a service makes that meets no fault. */
async function prepare(dist: string, library: string, folder: string) {
  const template: Template = { dataDir: join(folder, "template"), facts: new Facts() };
  const profile: Record<Phase, readonly Call[]> = { create: [], start: [], load: [], end: [], stop: [] };
  for (const first of ["create", "start", "end"] as const) {
    // Rounds begin with a log that has not ended.
    const { dataDir, facts } = first === "end" ? copyOf(template, join(folder, "ending")) : template;
    const files = join(folder, first);
    mkdirSync(files);
    const injector = new Injector(library, files, dataDir);
    const service = new ServiceProcess(dist, dataDir, injector.environment);
    try {
      const url = await service.listening;
      if (!url) throw new Error(`without any fault the service does not start: ${service.stderr}`);
      const [started, client] = [injector.calls().length, new Client(url, facts)];
      profile[first] = injector.calls();
      const actor = await client.actor();
      if (!actor) throw new Error(`without any fault the service refuses: ${client.problems}`);
      await client.work(actor);
      const loaded = injector.calls().length;
      const token = await client.login(operatorIn(dataDir));
      if (token === null) throw new Error(`without any fault the service refuses its operator: ${client.problems}`);
      const proven = injector.calls().length;
      // The start that is looked at takes it from the disk, and so does that of each round.
      await (first === "end" ? client.end(token) : client.withhold(token));
      const done = injector.calls().length;
      if (first === "end") profile.end = injector.calls().slice(proven);
      const end = await service.stop();
      if (end?.code !== 0 || client.problems.length)
        throw new Error(`without any fault: ${JSON.stringify(end)} ${client.problems} ${service.stderr}`);
      if (first === "end") continue;
      profile.load = injector.calls().slice(started, loaded);
      profile.stop = injector.calls().slice(done);
    } finally {
      await service.kill();
      injector.close();
      rmSync(files, { recursive: true });
    }
  }
  return { template, profile };
}

function copyOf({ dataDir, facts }: Template, to: string): Template {
  cpSync(dataDir, to, { recursive: true });
  return { dataDir: to, facts: facts.copy() };
}
