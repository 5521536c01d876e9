/** The runs that are recorded: a service from its first start on, and what else makes or moves a log. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openRegistry } from "#cairnlog/engine/registry/registry.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import type { Entry, TreeHead } from "#cairnlog/engine/verify/index.js";
import { Connection, CutOff, type Expectation } from "../crash/connection.js";
import { Crew, operatorSigner, type Scene, subscribeTo } from "../crash/load.js";
import type { Outside } from "../crash/outside.js";
import { mainOf } from "../reliability/planted.js";
import type { Random } from "../reliability/random.js";
import { newSigner, type TestSigner } from "../server/signers.js";
import { type RunningService, startService } from "../service.js";
import { type Known, knownFrom, receiptsOf, TracedLedger, whenSent } from "./known.js";
import { Disk } from "./record/disk.js";
import { recorded } from "./record/recorder.js";
import { readTrace, type TraceEvent } from "./record/trace.js";

const WORKERS = 3;
const PREDICATE_BASE = "https://x-service.example/predicates";
/** Flushes of a service until one fails: it has opened the log by then. */
const FLUSHES_BEFORE_FAILURE = 60;

export interface Recording {
  readonly name: string;
  /** The folder that was recorded, as it is at the end. */
  readonly root: string;
  readonly events: readonly TraceEvent[];
  readonly disk: Disk;
  readonly known: Known;
  /** Data directory, below the root. */
  readonly dataDir: string;
  /** Settings of whoever opens it. */
  readonly settings: NodeJS.ProcessEnv;
}

export interface RecordOptions {
  /** A folder for everything. */
  readonly folder: string;
  readonly library: string;
  readonly dist: string;
  readonly outside: Outside;
  readonly random: Random;
  /** Sent to the service in the longest of its runs. */
  readonly requests: number;
}

/** A connection on which so many requests are sent, and then no more. */
class LimitedConnection extends Connection {
  readonly #limit: number;

  constructor(url: string, ledger: TracedLedger, limit: number) {
    super(url, ledger);
    this.#limit = limit;
  }

  override async send(path: string, body: object | null, expectation?: Expectation) {
    if (this.answered >= this.#limit) throw new CutOff(path);
    return super.send(path, body, expectation);
  }
}

type Ending = "stopped" | "stopped under load" | "killed" | "failed" | "frozen";

/** One recorded folder, in which commands run one after the other. */
class Recorder {
  readonly #options: RecordOptions;
  readonly #name: string;
  readonly #disk: Disk;
  readonly #ledgers: TracedLedger[] = [];
  readonly root: string;
  readonly trace: string;
  readonly dataDir: string;
  readonly settings: NodeJS.ProcessEnv;

  /** @param dataDir below the root @param base data directory whose content is there from the beginning */
  constructor(options: RecordOptions, name: string, dataDir: string, base?: string, settings: NodeJS.ProcessEnv = {}) {
    this.#options = options;
    this.#name = name;
    this.root = join(options.folder, name, "disk");
    this.trace = join(options.folder, name, "trace");
    this.dataDir = dataDir;
    this.settings = settings;
    mkdirSync(this.root, { recursive: true });
    writeFileSync(this.trace, "");
    if (base) cpSync(base, this.path, { recursive: true });
    this.#disk = new Disk(this.root);
  }

  get path(): string {
    return join(this.root, this.dataDir);
  }

  get #environment(): NodeJS.ProcessEnv {
    return { ...recorded(this.#options.library, this.root, this.trace), ...this.settings };
  }

  /** Runs a command of the build to its end. @throws Error if it fails */
  async command(...args: string[]): Promise<void> {
    const env = { ...process.env, ...this.#environment };
    await promisify(execFile)(process.execPath, [mainOf(this.#options.dist), ...args], { env });
  }

  /** Runs the service under load. */
  async service(requests: number, ending: Ending): Promise<void> {
    const { outside, random, dist } = this.#options;
    const failing = ending === "failed" ? { POWERLOSS_FAIL_FLUSH: String(FLUSHES_BEFORE_FAILURE) } : {};
    const environment = {
      LOG_LEVEL: "silent",
      SERVICE_WEBHOOK_ALLOW_PRIVATE: "on",
      SERVICE_OTS_CALENDARS: outside.url,
      ...this.#environment,
      ...failing,
    };
    const service = await startService(this.path, environment, { main: mainOf(dist) });
    try {
      await this.#load(service, requests, ending, random);
      if (ending === "stopped" || ending === "frozen") service.process.kill("SIGTERM");
      const exit = await service.exited;
      const expected = ending === "killed" ? "SIGKILL" : ending === "failed" ? 74 : 0;
      if (exit !== expected) throw new Error(`the service ended with ${exit}, not with ${expected}`);
    } finally {
      service.process.kill("SIGKILL");
    }
  }

  async #load(service: RunningService, requests: number, ending: Ending, random: Random): Promise<void> {
    const ledger = new TracedLedger(this.trace, this.#options.outside.delivered);
    this.#ledgers.push(ledger);
    const signals = { "stopped under load": "SIGTERM", killed: "SIGKILL" } as const;
    const signal = ending in signals ? signals[ending as keyof typeof signals] : null;
    const limit = ending === "failed" ? Number.POSITIVE_INFINITY : requests;
    const connection = new LimitedConnection(service.url, ledger, limit);
    connection.isStopping = ending === "failed";
    const hookUrl = `${this.#options.outside.url}/hook`;
    const operator = operatorSigner(
      readFileSync(this.settings.SERVICE_OPERATOR_KEY ?? join(this.path, "operator.pem"), "utf8"),
    );
    const scene: Scene = { ledger, watched: newSigner(), submitted: [], hookUrl, operator };
    const until = setInterval(() => {
      if (!signal || connection.answered < requests * 0.8) return;
      connection.isStopping = true;
      service.process.kill(signal);
      clearInterval(until);
    }, 5);
    try {
      await subscribeTo(scene, connection);
      await new Crew(scene, WORKERS).work(connection, random.fork());
      if (signal && !connection.isStopping) service.process.kill(signal);
      if (ending === "frozen") await freeze(new Connection(service.url, ledger), operator, ledger);
    } catch (error) {
      if (!(error instanceof CutOff)) throw error;
    } finally {
      clearInterval(until);
    }
  }

  /** @throws Error if the recorder has missed something */
  end(more: (events: readonly TraceEvent[], known: Known) => Known = (_, known) => known): Recording {
    const events = readTrace(this.trace);
    this.#disk.follow(events);
    const { root, dataDir, settings } = this;
    const known = more(events, knownFrom(events, this.#ledgers));
    return { name: this.#name, root, events, disk: this.#disk, known, dataDir, settings };
  }
}

/** The operator ends the log. */
async function freeze(connection: Connection, operator: TestSigner, ledger: TracedLedger): Promise<void> {
  const end = { reason: "It is full." };
  ledger.add(await connection.send("/log/freeze", end, { token: await connection.login(operator) }), end);
}

interface HistoryItem {
  readonly entry: Entry;
  readonly json: Buffer;
  readonly sth: TreeHead | null;
}

/** All entries of a log that nobody has open. */
async function historyOf(dataDir: string): Promise<HistoryItem[]> {
  const pool = createPool(1);
  const operator = openOperatorKey(join(dataDir, "operator.pem"), pool);
  const registry = await openRegistry({ path: join(dataDir, "log"), operator, pool, predicateBase: PREDICATE_BASE });
  const { log } = registry;
  const history = Array.from({ length: log.size }, (_, index) => {
    const json = log.entryJsonAt(index)!;
    return { json: Buffer.from(json), entry: JSON.parse(json.toString()) as Entry, sth: log.treeHead(index + 1) };
  });
  await registry.close();
  await pool.close();
  return history;
}

/** What the other runs begin with: a log that the service has made, and copies of it. */
class Source {
  readonly options: RecordOptions;
  readonly dataDir: string;
  readonly history: readonly HistoryItem[];
  /** One entry a line. */
  readonly file: string;

  private constructor(options: RecordOptions, dataDir: string, history: readonly HistoryItem[]) {
    this.options = options;
    this.dataDir = dataDir;
    this.history = history;
    this.file = join(options.folder, "history.ndjson");
    writeFileSync(this.file, history.map(({ json }) => `${json}\n`).join(""));
  }

  static async of(options: RecordOptions, made: Recording): Promise<Source> {
    const dataDir = join(options.folder, "source");
    cpSync(join(made.root, made.dataDir), dataDir, { recursive: true });
    return new Source(options, dataDir, await historyOf(dataDir));
  }

  /** For logs in data directories that have no key of their own. */
  get settings(): NodeJS.ProcessEnv {
    return { SERVICE_OPERATOR_KEY: join(this.dataDir, "operator.pem") };
  }

  get few(): number {
    return Math.ceil(this.options.requests / 4);
  }

  /** Before and after the moment at which somebody was told that the whole history is there. */
  arrived(known: Known, until: number, hasHeads: boolean): Known {
    const history = this.history.map(({ entry, sth }) => ({ entry, sth: hasHeads ? sth : null }));
    const receipts = [...receiptsOf(history, until), ...known.receipts];
    return { ...known, receipts, sizes: { until, allowed: [0, history.length] } };
  }

  /** It was there from the beginning. */
  wasThere(known: Known): Known {
    return { ...known, receipts: [...receiptsOf(this.history, -1), ...known.receipts] };
  }
}

async function recordService(options: RecordOptions): Promise<Recording> {
  const { requests } = options;
  const first = new Recorder(options, "service", "srv/log-1/data");
  await first.service(requests, "stopped under load");
  await first.service(Math.ceil(requests / 4), "killed");
  await first.service(Math.ceil(requests / 4), "stopped");
  return first.end();
}

const OTHERS = {
  async failure(source) {
    const failing = new Recorder(source.options, "failure", "data", source.dataDir);
    await failing.service(source.options.requests, "failed");
    await failing.service(source.few, "stopped");
    return failing.end((_, known) => source.wasThere(known));
  },

  async import(source) {
    const importing = new Recorder(source.options, "import", "srv/data", undefined, source.settings);
    await importing.command("import", source.file, "--data", importing.path, "--json");
    await importing.service(source.few, "stopped");
    return importing.end((events, known) => source.arrived(known, whenSent(events, '"last_hash"'), false));
  },

  async "import after a start"(source) {
    const late = new Recorder(source.options, "import after a start", "srv/data", undefined, source.settings);
    await late.service(0, "stopped");
    await late.command("import", source.file, "--data", late.path, "--json");
    await late.service(source.few, "stopped");
    return late.end((events, known) => source.arrived(known, whenSent(events, '"last_hash"'), false));
  },

  async restore(source) {
    const { folder, dist } = source.options;
    const backup = join(folder, "backup");
    const args = ["backup", "--data", source.dataDir, "--to", backup];
    await promisify(execFile)(process.execPath, [mainOf(dist), ...args]);
    const restoring = new Recorder(source.options, "restore", "srv/data", undefined, source.settings);
    await restoring.command("restore", backup, "--to", restoring.path, "--may-fork", "--json");
    await restoring.service(source.few, "stopped");
    return restoring.end((events, known) => source.arrived(known, whenSent(events, '"from_mirror"'), true));
  },

  async end(source) {
    const ending = new Recorder(source.options, "end", "data", source.dataDir);
    await ending.service(source.few, "frozen");
    return ending.end((_, known) => source.wasThere(known));
  },

  async migration(source) {
    const old = join(source.options.folder, "old");
    cpSync(source.dataDir, old, { recursive: true });
    await setFormat(join(old, "log"), 1);
    const migrating = new Recorder(source.options, "migration", "data", old);
    await migrating.service(source.few, "stopped");
    return migrating.end((_, known) => source.wasThere(known));
  },
} satisfies Record<string, (source: Source) => Promise<Recording>>;

export type RecordingName = "service" | keyof typeof OTHERS;

/** Records the named runs; all of them, if none is named. */
export async function record(options: RecordOptions, only: readonly RecordingName[] = []): Promise<Recording[]> {
  const isWanted = (name: string) => !only.length || only.includes(name as RecordingName);
  const service = await recordService(options);
  const recordings = isWanted(service.name) ? [service] : [];
  const others = Object.entries(OTHERS).filter(([name]) => isWanted(name));
  if (!others.length) return recordings;
  const source = await Source.of(options, service);
  for (const [, run] of others) recordings.push(await run(source));
  return recordings;
}

/** Makes a log one of an older format, whose steps of migration are all to be made. */
async function setFormat(path: string, format: number): Promise<void> {
  const store = openStore({ path });
  const row = { ...store.get("meta", "log")!, format };
  const after = store.position().sequence;
  const rows = [{ table: "meta", key: "log", row }] as const;
  await store.commit({ after, position: null, batches: [], rows, tiles: [] });
  await store.close();
}
