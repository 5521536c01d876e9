/** A real log in a directory of its own whose signer, disk and workers fail when the test says so. */
import type { Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import type { Receipt } from "#cairnlog/engine/log/state/executor.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import type { PostingTables } from "#cairnlog/engine/store/postings/contract.js";
import type { Store } from "#cairnlog/engine/store/store.js";
import { scratchFolder } from "../../service.js";
import { storedRuns } from "../../store/postings/storedruns.js";

/** The modules of the build under test. */
export interface Engine {
  readonly start: typeof import("#cairnlog/engine/log/start.js");
  readonly store: typeof import("#cairnlog/engine/store/store.js");
  readonly operatorKey: typeof import("#cairnlog/engine/crypto/signer/operator-key.js");
  readonly privateKey: typeof import("#cairnlog/engine/crypto/keys/signatures.js");
  readonly pool: typeof import("#cairnlog/engine/crypto/pool/pool.js");
  readonly verifier: typeof import("#cairnlog/engine/crypto/pool/pool.js");
  readonly password: typeof import("#cairnlog/engine/crypto/passwords/password.js");
  readonly spki: typeof import("#cairnlog/engine/crypto/keys/spki.js");
  readonly postings: typeof import("#cairnlog/engine/store/postings/postings.js");
  readonly term: typeof import("#cairnlog/engine/store/postings/term.js");
  readonly termTable: typeof import("#cairnlog/engine/store/postings/termtable.js");
}

/** One injected failure. */
export interface FaultCase {
  readonly name: string;
  /** Sentences, one for each problem. */
  run(engine: Engine): Promise<readonly string[]>;
}

/** A commit fails before or after its data is on disk. */
export type Fate = "not persisted" | "persisted anyway";

export class Faults {
  /** The fates of the next commits, in order; later ones succeed. */
  commits: (Fate | "works")[] = [];
  /** The error of failing commits. */
  error: () => Error = () => new Error("injected: write failed");
  /** Makes every read of this kind fail. */
  reads = new Set<"get" | "range" | "batchAt" | "lastBatch" | "tile">();
  /** The fate of the next write of this kind of postings. */
  postings = new Map<keyof PostingTables, Fate>();
  /** Replaces the operator key's signing function, if set. */
  sign: ((messages: readonly Uint8Array[]) => Promise<readonly Uint8Array[]>) | null = null;
  /** Number of injected faults. */
  injected = 0;

  wrap(store: Store): Store {
    const reads: ReadonlySet<unknown> = this.reads;
    const commit: Store["commit"] = (changes) => this.#carryOut(this.commits.shift(), () => store.commit(changes));
    const postings = new Proxy(store.postings, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target);
        if (!this.postings.has(name as keyof PostingTables)) return value;
        return (...args: unknown[]) => {
          const fate = this.postings.get(name as keyof PostingTables);
          this.postings.delete(name as keyof PostingTables);
          return this.#carryOut(fate, () => value(...args));
        };
      },
    });
    return new Proxy(store, {
      get: (target, name) => {
        if (name === "commit") return commit;
        if (name === "postings") return postings;
        if (reads.has(name)) {
          return () => {
            this.injected++;
            throw new Error(`injected: ${String(name)} failed`);
          };
        }
        const value = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  async #carryOut(fate: Fate | "works" | undefined, write: () => Promise<void>): Promise<void> {
    if (fate !== "not persisted") await write();
    if (fate === undefined || fate === "works") return;
    this.injected++;
    throw this.error();
  }
}

export const note = (n: number) => ({
  event_type: "note",
  payload: { n, fingerprint: `sha256:${n.toString(16).padStart(64, "0")}`, tags: ["fault"] },
});

const LIMIT_MS = 20_000;

const WAVES = 6;
/** Number of appends in a wave: enough that batches are in every stage at once while the disk is busy. */
const WIDTH = 150;
/** Number of appends in a storm. */
export const STORM = WAVES * WIDTH;

/** Awaits `work` with a time limit. @throws Error when the limit is exceeded */
export async function answered<T>(what: string, work: Promise<T>, milliseconds = LIMIT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} was not answered`)), milliseconds);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export class FaultyLog {
  readonly faults = new Faults();
  readonly problems: string[] = [];
  readonly acknowledged: Receipt[] = [];
  /** Numbers of refused notes, which must not be in the log. */
  readonly refused = new Set<number>();
  readonly codes = new Set<string>();
  log!: LogWriter;
  #store!: Store;
  readonly #engine: Engine;
  readonly #folder = scratchFolder();
  readonly #key: string;
  readonly #mapSize: number;
  readonly #pool: Pool | undefined;
  #next = 0;

  static async open(engine: Engine, options: { mapSize?: number; pool?: Pool } = {}): Promise<FaultyLog> {
    const faulty = new FaultyLog(engine, options);
    await faulty.reopen();
    return faulty;
  }

  private constructor(engine: Engine, { mapSize = 2 ** 30, pool }: { mapSize?: number; pool?: Pool }) {
    this.#engine = engine;
    this.#key = engine.privateKey.generatePrivateKey("ed25519");
    this.#mapSize = mapSize;
    this.#pool = pool;
  }

  /** Opens the log, or closes and reopens it. `mapSize`: its maximum size from now on. */
  async reopen(mapSize = this.#mapSize): Promise<void> {
    await this.log?.close();
    const { path } = this.#folder;
    const real = this.#engine.operatorKey.operatorKey(this.#key, this.#pool);
    const signer = { ...real, sign: (messages: readonly Uint8Array[]) => (this.faults.sign ?? real.sign)(messages) };
    this.#store = this.faults.wrap(this.#engine.store.openStore({ path, mapSize }));
    const pool = this.#pool ? { pool: this.#pool } : {};
    this.log = await this.#engine.start.startLog(this.#store, { path, signer, mapSize, ...pool });
  }

  /** Entries whose postings are in runs on disk. */
  get inRuns(): number {
    return Math.max(0, ...storedRuns(this.#store.postings).map(({ to }) => to));
  }

  /** Appends notes in waves. Resolves when all have been answered. @returns the number of failures */
  async storm({ waves = WAVES, width = WIDTH, wait = LIMIT_MS } = {}): Promise<number> {
    const appends: Promise<void>[] = [];
    let failed = 0;
    for (let wave = 0; wave < waves; wave++) {
      for (let i = 0; i < width; i++) {
        const n = this.#next++;
        const append = this.log.append(note(n)).then(
          (receipt) => {
            this.acknowledged.push(receipt);
          },
          (error: Error & { code?: string }) => {
            failed++;
            this.refused.add(n);
            if (error.name !== "CairnlogError") this.problems.push(`an append failed without a code: ${error.stack}`);
            else this.codes.add(error.code!);
          },
        );
        appends.push(answered(`append ${n}`, append, wait));
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (const outcome of await Promise.allSettled(appends))
      if (outcome.status === "rejected") this.problems.push((outcome.reason as Error).message);
    return failed;
  }

  expect(holds: boolean, problem: string): void {
    if (!holds) this.problems.push(problem);
  }

  /** Checks that memory equals the disk, and that both contain every acknowledged change. */
  async check(when: string, isPersistedAnyway = false): Promise<void> {
    const { log } = this;
    const report = await log.verify();
    for (const error of report.errors) this.problems.push(`${when}: verify: ${JSON.stringify(error)}`);
    this.expect(
      report.entry_count === log.size,
      `${when}: ${report.entry_count} entries on disk, ${log.size} in memory`,
    );
    for (const difference of log.stateDifferences()) this.problems.push(`${when}: ${difference}`);
    for (const { log_entry_id: id, entry_hash, sth } of this.acknowledged)
      if (
        log.entry(id)?.entry_hash !== entry_hash ||
        JSON.stringify(log.treeHead(sth.tree_size)) !== JSON.stringify(sth)
      )
        this.problems.push(`${when}: entry ${id} or its head is not the acknowledged one`);
    if (isPersistedAnyway) return;
    for (const { id, payload } of log.entries())
      if (this.refused.has(payload!.n as number)) this.problems.push(`${when}: entry ${id} was refused`);
  }

  /** Checks the state after the fault: appends work, and everything is there after a restart. */
  async recover(isPersistedAnyway = false): Promise<void> {
    const { faults } = this;
    faults.commits = [];
    faults.sign = null;
    faults.reads.clear();
    const before = this.acknowledged.length;
    const failed = await this.storm({ waves: 2 });
    this.expect(failed === 0, `after the fault ${failed} appends failed`);
    this.expect(this.acknowledged.length === before + 2 * WIDTH, "after the fault appends are not acknowledged");
    await this.check("after the fault", isPersistedAnyway);
    await answered("close and open", this.reopen());
    await this.check("after a restart", isPersistedAnyway);
  }

  async close(): Promise<void> {
    try {
      await answered("close", this.log.close());
    } catch (error) {
      this.problems.push((error as Error).message);
    }
    this.#folder.remove();
  }
}
