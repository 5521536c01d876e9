/** Real logs in temporary directories, for tests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { type OperatorKey, operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { type Log, openLog, openLogReader } from "#cairnlog/engine/log/log.js";
import { type LogOptions, startLog } from "#cairnlog/engine/log/start.js";
import type { LogReader } from "#cairnlog/engine/log/view/reader.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import type { PostingTables } from "#cairnlog/engine/store/postings/contract.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";

/** Many logs are open at once while a failing property is shrunk. */
export const MAP_SIZE = 2 ** 30;

/** Verifies the logs of one test file. It has one thread, which starts with the first task. */
export const testPool = createPool(1);
afterAll(() => testPool.close());

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const logs = new Set<Log>();
afterEach(async () => {
  for (const log of logs) await log.close();
  logs.clear();
});

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-"));
  folders.push(folder);
  return folder;
}

export const testOperator: OperatorKey = operatorKey(generatePrivateKey("ed25519"));

/** A log in a new folder (or `options.path`), closed after the test. */
export async function openTestLog(options: Partial<LogOptions> = {}): Promise<{ log: LogWriter; path: string }> {
  const path = options.path ?? temporaryFolder();
  const log = await openLog({ signer: testOperator, pool: testPool, mapSize: MAP_SIZE, ...options, path });
  logs.add(log);
  return { log, path };
}

/** The log at `path`, opened by a reader that has only the public key; closed after the test. */
export async function openTestReader(
  path: string,
  operator: Pick<OperatorKey, "public"> = testOperator,
): Promise<LogReader> {
  const log = await openLogReader({ path, operatorKey: operator.public.pem, pool: testPool, mapSize: MAP_SIZE });
  logs.add(log);
  return log;
}

/** Like `openTestLog`, over a store whose `commit` can be made to fail. */
export async function openFaultyLog(
  options: Partial<LogOptions> = {},
): Promise<{ log: LogWriter; path: string; faults: Faults }> {
  const path = options.path ?? temporaryFolder();
  const store = openStore({ path, mapSize: MAP_SIZE });
  const faults = new Faults(store);
  const defaults = { signer: testOperator, pool: testPool, mapSize: MAP_SIZE };
  const log = await startLog(faults.store, { ...defaults, ...options, path });
  logs.add(log);
  return { log, path, faults };
}

/** Makes commits fail, before or after the disk has them. */
export class Faults {
  readonly store: Store;
  /** The fates of the next commits, in order; later ones succeed. */
  plan: ("works" | "not persisted" | "persisted anyway" | "no room")[] = [];
  /** Whether the disk has free space. */
  hasRoom = true;
  /** Whether the disk has free space only for those whom an anchor reaches. */
  isTight = false;
  /** Commits wait for this promise. */
  hold: Promise<void> = Promise.resolve();
  /** Number of commits that were begun. */
  begun = 0;
  /** Does each write of batches and of runs: a test may have it wait for its turn (`test/orders`). */
  step = <T>(_label: string, write: () => Promise<T>): Promise<T> => write();

  constructor(store: Store) {
    const commit: Store["commit"] = async (changes) => {
      this.begun++;
      const fate = this.plan.shift() ?? "works";
      await this.hold;
      if (fate === "no room") refuseForRoom();
      if (fate !== "not persisted") await this.step("a batch is written", () => store.commit(changes));
      if (fate !== "works") throw new Error(`injected: ${fate}`);
    };
    this.store = new Proxy(store, {
      get: (target, name) => {
        if (name === "commit") return commit;
        if (name === "checkRoom") return () => (this.hasRoom ? store.checkRoom() : refuseForRoom());
        if (name === "isTight") return this.isTight;
        if (name === "postings") return this.#stepwise(store.postings);
        if (name === "lastBatch") this.beforeReading();
        const value = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  #stepwise(tables: PostingTables): PostingTables {
    return {
      ...tables,
      writeRun: (run, ...rest) => this.step(`run ${run} is written`, () => tables.writeRun(run, ...rest)),
      removeBlocks: (run) => this.step(`run ${run} is removed`, () => tables.removeBlocks(run)),
    };
  }

  /** Called before the end of the log is read: at the start and after each failure. */
  beforeReading(): void {}
}

function refuseForRoom(): never {
  throw new CairnlogError("storage-full", "injected: no room", { retryAfter: 10 });
}
