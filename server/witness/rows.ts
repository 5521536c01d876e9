/**
 * What a witness must never forget: for each log the newest checkpoint that it cosigned. One row an origin, on LMDB. A row
 * is on disk before anybody gets the cosignature, and changes only from the row that the cosignature was checked against.
 */
import { createHash } from "node:crypto";
import type { Database } from "lmdb";
import { closeAfter, closeAll } from "../../engine/base/closing.js";
import { CairnlogError } from "../../engine/base/error.js";
import { type Environment, openEnvironment, settled } from "../../engine/store/lmdb/environment.js";
import { freeBytes, StoreHealth, storageFull } from "../../engine/store/lmdb/health.js";
import { takeWriterLock, type WriterLock } from "../../engine/store/lmdb/writerlock.js";
import { type Checkpoint, parseCheckpointText, parseNote } from "../../engine/verify/index.js";

/** The newest cosigned checkpoint of a log. */
export interface WitnessRow extends Checkpoint {
  /** The checkpoint with the signatures of the log that were verified, and the cosignature. */
  readonly note: string;
}

/** A row as it is stored: its note, which says size and root. */
type StoredRow = string;

/** Two kibibytes a log, or eight where log and witness sign with ML-DSA-44: room for millions. */
const MAP_SIZE = 2 ** 34;
/** Free bytes below which nothing is written: a write that LMDB cannot carry out ends the process. */
const MIN_FREE_BYTES = 16 * 2 ** 20;
const ADVICE =
  "Do not start with an empty directory or an old copy: the witness would sign what contradicts its own signatures. Make a new witness with another key and name.";

export class WitnessRows {
  readonly #path: string;
  readonly #lock: WriterLock;
  readonly #environment: Environment;
  readonly #table: Database<StoredRow, string>;
  /** Tells when no more can be written by this process. */
  readonly health = new StoreHealth();

  private constructor(path: string, lock: WriterLock, environment: Environment) {
    this.#path = path;
    this.#lock = lock;
    this.#environment = environment;
    this.#table = environment.openDB<StoredRow, string>({ name: "checkpoints", encoding: "string" });
  }

  /**
   * Opens the rows in the directory `path`, or makes it.
   * @throws CairnlogError `in-use` if another process has them; `corrupt-log` if they are damaged; `storage-failed`
   */
  static async open(path: string): Promise<WitnessRows> {
    const lock = await takeWriterLock(path);
    let environment: Environment | undefined;
    try {
      environment = openEnvironment({
        path,
        mapSize: MAP_SIZE,
        maxDbs: 1,
        readOnly: false,
        noSync: false,
        advice: ADVICE,
        mustExist: false,
      });
      const rows = new WitnessRows(path, lock, environment);
      for (const { key, value } of rows.#table.getRange({})) rows.#read(key, value);
      return rows;
    } catch (error) {
      return closeAfter(
        error,
        () => environment?.close(),
        () => lock.release(),
      );
    }
  }

  /** The row of a log; undefined for one of which nothing was cosigned. @throws CairnlogError `corrupt-log` */
  get(origin: string): WitnessRow | undefined {
    return this.byHash(originHash(origin));
  }

  /** The row of the log whose origin has this SHA-256, in lower-case hex. @throws CairnlogError `corrupt-log` */
  byHash(hash: string): WitnessRow | undefined {
    this.health.check();
    const value = this.#table.get(hash);
    return value === undefined ? undefined : this.#read(hash, value);
  }

  /** Why nothing can be written now; null while the disk has room. @throws CairnlogError `storage-failed` */
  get shortage(): string | null {
    const free = freeBytes(this.#path);
    return free < MIN_FREE_BYTES ? `Only ${free} bytes are free on the disk of the witness.` : null;
  }

  /**
   * Replaces the row of `next.origin`, if it still has the size and root of `known`; resolves when that is on disk. The
   * comparison is part of the transaction, so of two that go on from one size only one happens.
   *
   * If we crash before this resolves: the row is the old or the new one, and nobody has the cosignature in the new one.
   * @returns whether it was replaced
   * @throws CairnlogError `storage-full`; `storage-failed`, after which the row may be either one
   */
  async replace(known: WitnessRow | undefined, next: WitnessRow): Promise<boolean> {
    this.health.check();
    const { shortage } = this;
    if (shortage !== null) throw storageFull(shortage);
    const key = originHash(next.origin);
    const done = this.#environment.transaction(() => {
      const stored = this.#table.get(key);
      const row = stored === undefined ? undefined : this.#read(key, stored);
      if (row?.treeSize !== known?.treeSize || row?.rootHash !== known?.rootHash) return false;
      // Its result is that of the transaction, which is awaited.
      this.#table.put(key, next.note).catch(() => {});
      return true;
    });
    const isReplaced = await settled(done, this.health);
    await settled(this.#environment.flushed, this.health);
    return isReplaced;
  }

  /** Waits for writes that are under way. After a failure nothing is closed: that would call LMDB. */
  async close(): Promise<void> {
    if (this.health.failure) return;
    await closeAll(
      () => this.#environment.close(),
      () => this.#lock.release(),
    );
  }

  /** Pages that were damaged must not let the witness sign a second history. */
  #read(key: string, note: string): WitnessRow {
    const text = parseNote(note)?.text;
    const checkpoint = text === undefined ? undefined : parseCheckpointText(text);
    if (!checkpoint || originHash(checkpoint.origin) !== key)
      throw new CairnlogError("corrupt-log", `The row ${key} of the witness is damaged. ${ADVICE}`);
    return { ...checkpoint, note };
  }
}

/** The name of a log in paths and rows: SHA-256 of its origin, in lower-case hex. */
function originHash(origin: string): string {
  return createHash("sha256").update(origin).digest("hex");
}
