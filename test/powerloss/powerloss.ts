/** One run: everything is recorded once, and then states of the disk are made of the records, opened and judged. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { holding } from "../backup/bytes.js";
import { Outside } from "../crash/outside.js";
import { Random } from "../reliability/random.js";
import { scratchFolder } from "../service.js";
import { Moment } from "./judge.js";
import { type Answer, Opener } from "./openers.js";
import { isLockFile } from "./record/disk.js";
import { buildRecorder } from "./record/recorder.js";
import { type Recording, type RecordingName, record } from "./recordings.js";
import { SHAPES, type Shape, writeState } from "./states.js";

/** Processes that open states. */
const OPENERS = 2;
/** Draws of a new state, each time one is drawn that was there before. */
const DRAWS = 40;
/** Of so many states, one is opened by a service with everything, the others by the part of it that opens a log. */
const SERVICE_STATES = 10;
/** Problems after which a run ends. */
const ENOUGH = 20;

export interface PowerlossOptions {
  readonly seed: number;
  readonly states: number;
  /** Requests in the longest run that is recorded. */
  readonly requests: number;
  /** The runs that are recorded; all of them, if absent. */
  readonly only?: readonly RecordingName[] | undefined;
  /** The build that is recorded, and that opens the states. */
  readonly dist: string;
  /** Failing states are kept in this folder. */
  readonly keep: string | null;
  /** Ends with the first problem. */
  readonly stopsEarly?: boolean;
  readonly progress?: (states: number) => void;
  readonly signal?: AbortSignal;
}

export interface PowerlossReport {
  readonly seed: number;
  /** Events, and states that were opened, of each recording. */
  readonly recordings: Record<string, { readonly events: number; states: number }>;
  readonly shapes: Record<Shape, number>;
  states: number;
  opened: number;
  /** Receipts, shown heads, and rows that were looked for in a state. */
  receipts: number;
  heads: number;
  rows: number;
  readonly problems: string[];
}

export async function powerloss(options: PowerlossOptions): Promise<PowerlossReport> {
  const folder = scratchFolder();
  const outside = await Outside.open();
  try {
    return await new Run(options, folder.path, outside).run();
  } finally {
    await outside.close();
    folder.remove();
  }
}

/** A start has taken from the disk what was withheld: all files, byte by byte. */
function stillIn(dataDir: string, answer: Answer, { withheld }: Moment): string[] {
  const titles = [...withheld].map(([id, title]) => [`entry ${id}`, Buffer.from(title)] as const);
  if (!("entries" in answer) || !titles.length) return [];
  return holding(join(dataDir, "log"), Object.fromEntries(titles)).map(
    (found) => `a payload that was withheld is on the disk after a start: ${found}`,
  );
}

/** One state that was chosen. */
interface Draw {
  readonly recording: Recording;
  readonly cut: number;
  readonly shape: Shape;
  /** All other choices follow from it. */
  readonly seed: number;
}

class Run {
  readonly #options: PowerlossOptions;
  readonly #folder: string;
  readonly #outside: Outside;
  readonly #library: string;
  readonly #random: Random;
  readonly #report: PowerlossReport;
  readonly #seen = new Set<string>();
  /** By recording and size. */
  readonly #heads = new Map<Recording, Map<number, string>>();
  #drawn = 0;

  constructor(options: PowerlossOptions, folder: string, outside: Outside) {
    this.#options = options;
    this.#folder = folder;
    this.#outside = outside;
    this.#random = new Random(options.seed);
    this.#library = buildRecorder(folder);
    this.#report = {
      seed: options.seed,
      recordings: {},
      shapes: Object.fromEntries(SHAPES.map((shape) => [shape, 0])) as Record<Shape, number>,
      states: 0,
      opened: 0,
      receipts: 0,
      heads: 0,
      rows: 0,
      problems: [],
    };
  }

  async run(): Promise<PowerlossReport> {
    const { dist, requests, only } = this.#options;
    const parts = { folder: this.#folder, library: this.#library, outside: this.#outside };
    let recordings: Recording[];
    try {
      recordings = await record({ ...parts, dist, requests, random: this.#random.fork() }, only);
    } catch (error) {
      this.#report.problems.push(`a run could not be recorded: ${(error as Error).stack}`);
      return this.#report;
    }
    for (const recording of recordings) {
      this.#heads.set(recording, new Map());
      this.#report.recordings[recording.name] = { events: recording.events.length, states: 0 };
      this.#report.problems.push(...this.#checkReplay(recording));
    }
    if (!this.#report.problems.length) await Promise.all(Array.from({ length: OPENERS }, () => this.#open(recordings)));
    return this.#report;
  }

  /** The recorder has seen everything if all records together make the files that are there. */
  #checkReplay(recording: Recording): string[] {
    const { name, disk, root, events } = recording;
    const replayed = join(this.#folder, "replayed");
    writeState(disk, events.length - 1, "everything", new Random(0), replayed);
    const problems = [...disk.gaps, ...differences(root, replayed)].map((problem) => `recording ${name}: ${problem}`);
    rmSync(replayed, { recursive: true });
    return problems;
  }

  async #open(recordings: readonly Recording[]): Promise<void> {
    const { states, signal, progress, stopsEarly, dist } = this.#options;
    const { problems } = this.#report;
    const opener = new Opener(dist, this.#library);
    while (this.#drawn < states && !signal?.aborted && problems.length < (stopsEarly ? 1 : ENOUGH)) {
      // A path of its own: a process that has opened one file there knows another one by the same name as open.
      const path = join(this.#folder, `state-${++this.#drawn}`);
      const draw = this.#draw(recordings, path);
      if (!draw) break;
      const { recording, cut } = draw;
      const moment = new Moment(recording, cut);
      const dataDir = join(path, recording.dataDir);
      const answer = await opener.open({
        dataDir,
        settings: recording.settings,
        rows: moment.rows,
        isService: draw.seed % SERVICE_STATES === 0,
      });
      const found = [...moment.judge(answer, this.#heads.get(recording)!), ...stillIn(dataDir, answer, moment)];
      this.#count(draw, moment, answer);
      rmSync(path, { recursive: true });
      if (found.length) problems.push(this.#describe(draw, found));
      progress?.(this.#report.states);
    }
    await opener.close();
  }

  /** Writes a state that was not there before. @returns null if none was found */
  #draw(recordings: readonly Recording[], path: string): Draw | null {
    for (let i = 0; i < DRAWS; i++) {
      const random = this.#random;
      const recording = random.pick(recordings);
      const draw = {
        recording,
        cut: cutOf(recording, random),
        shape: random.pick(SHAPES),
        seed: random.below(2 ** 32),
      };
      const hash = this.#write(draw, path);
      const known = recording.known.receipts.filter(({ at }) => at <= draw.cut).length;
      const id = `${recording.name} ${known} ${hash}`;
      if (!this.#seen.has(id)) {
        this.#seen.add(id);
        return draw;
      }
      rmSync(path, { recursive: true });
    }
    return null;
  }

  #write({ recording: { disk }, cut, shape, seed }: Draw, path: string): string {
    return writeState(disk, cut, shape, new Random(seed), path);
  }

  #count({ recording, shape }: Draw, moment: Moment, answer: object): void {
    const report = this.#report;
    report.states++;
    report.recordings[recording.name]!.states++;
    report.shapes[shape]++;
    if ("entries" in answer) {
      report.opened++;
      report.receipts += moment.receipts.length;
      report.heads += moment.heads.length;
      report.rows += moment.facts.length;
    }
  }

  /** Keeps the state, and the trace that it was made of. */
  #describe(draw: Draw, found: readonly string[]): string {
    const { recording, cut, shape } = draw;
    const label = recording.disk.labels[cut];
    const about = `${recording.name}, after event ${cut} (${label}), ${shape}`;
    const { keep } = this.#options;
    const more = found.length > 1 ? ` (and ${found.length - 1} more)` : "";
    if (keep === null) return `${about}: ${found[0]}${more}`;
    const place = join(
      keep,
      `${recording.name.replaceAll(" ", "-")}-${cut}-${shape.replaceAll(" ", "-")}-${draw.seed}`,
    );
    rmSync(place, { recursive: true, force: true });
    mkdirSync(place, { recursive: true });
    this.#write(draw, join(place, "disk"));
    cpSync(join(recording.root, "..", "trace"), join(place, "trace"));
    const { name, dataDir } = recording;
    const facts = { run: this.#options.seed, recording: name, dataDir, cut, label, shape, seed: draw.seed, found };
    writeFileSync(join(place, "state.json"), `${JSON.stringify(facts, null, 2)}\n`);
    return `${about}: ${found[0]}${more}; kept in ${place}`;
  }
}

/** A moment: any, or one at an event of a kind that is rare. */
function cutOf({ events, disk }: Recording, random: Random): number {
  if (random.chance(0.5)) return random.below(events.length);
  const label = random.pick([...new Set(disk.labels)]);
  const at = random.pick([...disk.labels.keys()].filter((i) => disk.labels[i] === label));
  return Math.max(0, at - random.below(2));
}

/** Names and content that differ between two folders. */
function differences(left: string, right: string): string[] {
  const names = new Set([left, right].flatMap((folder) => readdirSync(folder)));
  return [...names].flatMap((name) => {
    const [a, b] = [join(left, name), join(right, name)];
    if (isLockFile(name)) return [];
    if (!existsSync(a) || !existsSync(b)) return [`${existsSync(a) ? a : b} is there once only`];
    if (statSync(a).isDirectory() && statSync(b).isDirectory()) return differences(a, b);
    return readFileSync(a).equals(readFileSync(b)) ? [] : [`${a} is not what was recorded`];
  });
}
