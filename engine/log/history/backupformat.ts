/**
 * The files of a backup: `manifest.json`, which names every other file by its SHA-256; segments, each with the entries
 * and heads of one stretch of the log, which never change; and one file with the private rows of the moment when the
 * log had `tree_size` entries. Files that the manifest does not name are left over from an interrupted backup.
 */
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { type FileHandle, open, rename } from "node:fs/promises";
import { join } from "node:path";
import { closeAfter, closeAll } from "../../base/closing.js";
import { CairnlogError } from "../../base/error.js";
import { flushFolder } from "../../base/files.js";
import { container, hasEnded } from "../../base/process.js";
import type { LogMeta } from "../../store/schema/rows.js";
import { anyObject, anyText, arrayOf, hexHash, index, objectOf, orNull, where } from "../../verify/json/shape.js";
import { OPERATOR_CHAIN, type OperatorTerm } from "../../verify/tree/operators.js";
import { TREE_HEAD, type TreeHead } from "../../verify/tree/treehead.js";

export const BACKUP_FORMAT = "cairnlog-backup/v1";
const MANIFEST = "manifest.json";
/** Bytes collected before they are written. */
const CHUNK_BYTES = 1 << 20;
/** Bytes that wait for the disk, at most: a log on the same disk, which flushes each batch, waits until all of them are on it. */
const FLUSHED_BYTES = 4 << 20;
const LINE_FEED = 0x0a;

/** A file of a backup. */
interface BackupFile {
  readonly file: string;
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
}

/** Lines in pairs: an entry as it is stored, and the head of the size that it makes, or `null`. */
export interface BackupSegment extends BackupFile {
  /** Leaf indexes [from, to). */
  readonly from: number;
  readonly to: number;
}

export interface BackupManifest {
  readonly format: typeof BACKUP_FORMAT;
  /** PEM of the operator's public key. */
  readonly operator_key: string;
  /** The chain of operator keys; backups of earlier versions lack it. */
  readonly operators?: readonly OperatorTerm[];
  readonly meta: LogMeta;
  readonly tree_size: number;
  /** Entry hash of the newest entry; null for an empty log. */
  readonly entry_hash: string | null;
  readonly head: TreeHead | null;
  readonly made_at: string;
  readonly segments: readonly BackupSegment[];
  /** Leaf indexes of the entries that the segments have without their payload; absent in backups of earlier versions. */
  readonly withheld?: readonly number[];
  /** A line for each row: table, key and row. */
  readonly private_rows: BackupFile;
}

/** A name without a path, so that it cannot leave the backup's folder. */
const FILE_NAME = where("the name of a file", (value) => typeof value === "string" && /^[\w-]+\.ndjson$/.test(value));
const FILE = { file: FILE_NAME, bytes: index, sha256: hexHash };
const SHAPE = objectOf(
  {
    format: where(JSON.stringify(BACKUP_FORMAT), (value) => value === BACKUP_FORMAT),
    operator_key: anyText,
    meta: anyObject,
    tree_size: index,
    entry_hash: orNull(hexHash),
    head: orNull(TREE_HEAD),
    made_at: anyText,
    segments: arrayOf(objectOf({ ...FILE, from: index, to: index })),
    private_rows: objectOf(FILE),
  },
  { operators: OPERATOR_CHAIN, withheld: arrayOf(index) },
  "ignored",
);

/** The manifest of the backup in `folder`; undefined if there is none. @throws CairnlogError `corrupt-log` */
export function readBackupManifest(folder: string): BackupManifest | undefined {
  let json: string;
  try {
    json = readFileSync(join(folder, MANIFEST), "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw cause;
  }
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new CairnlogError("corrupt-log", `The manifest of the backup in ${folder} is damaged.`);
  }
  const misfit = SHAPE(value, "");
  if (misfit !== undefined)
    throw new CairnlogError("corrupt-log", `The manifest of the backup in ${folder} is not valid. ${misfit}`);
  const manifest = value as BackupManifest;
  let end = 0;
  for (const { file, from, to } of manifest.segments) {
    if (from !== end || to <= from)
      throw new CairnlogError("corrupt-log", `The backup's segment ${file} does not begin where the one before ends.`);
    end = to;
  }
  if (end !== manifest.tree_size)
    throw new CairnlogError("corrupt-log", `The backup's segments hold ${end} entries, not ${manifest.tree_size}.`);
  return manifest;
}

/**
 * Replaces the manifest of the backup atomically, unless it is not `earlier` any more. Of two processes that do so at once, the
 * draft of one is there when the other looks, so that not both believe that nobody else does: whoever replaces the manifest
 * removes what it does not name.
 * @throws CairnlogError `precondition-failed`
 */
export async function replaceManifest(
  folder: string,
  manifest: BackupManifest,
  earlier: BackupManifest | undefined,
): Promise<void> {
  const file = await HashedFile.create(folder, "manifest");
  try {
    await file.line(JSON.stringify(manifest, null, 2));
    const other = readdirSync(folder).find((name) => name !== file.draft && name.endsWith(".manifest.partial"));
    if (other !== undefined || readBackupManifest(folder)?.made_at !== earlier?.made_at)
      throw new CairnlogError(
        "precondition-failed",
        `Another process ${other ? `changes (${other})` : "has changed"} the backup in ${folder} at the same time.`,
      );
  } catch (error) {
    return closeAfter(error, () => file.abandon());
  }
  await file.keep(MANIFEST);
}

/** A file that is being written: it gets its name only when it is complete, hashed and on disk. */
export class HashedFile {
  readonly #folder: string;
  /** The name that it has until then. */
  readonly draft: string;
  readonly #handle: FileHandle;
  readonly #hash = createHash("sha256");
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #bytes = 0;
  #unflushedBytes = 0;

  private constructor(folder: string, draft: string, handle: FileHandle) {
    this.#folder = folder;
    this.draft = draft;
    this.#handle = handle;
  }

  /**
   * If we crash while it is written, a draft is left over, which the next backup removes.
   * @param what distinguishes files that are written at the same time: lower-case letters
   */
  static async create(folder: string, what: string): Promise<HashedFile> {
    const of = `${process.pid}-${container().toString(16)}-${randomBytes(4).toString("hex")}`;
    const draft = `draft.${of}.${what}.partial`;
    return new HashedFile(folder, draft, await open(join(folder, draft), "wx", 0o600));
  }

  async line(content: string | Uint8Array): Promise<void> {
    const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
    this.#pending.push(bytes, Uint8Array.of(LINE_FEED));
    this.#pendingBytes += bytes.length + 1;
    if (this.#pendingBytes >= CHUNK_BYTES) await this.#flush();
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#pending);
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#bytes += bytes.length;
    this.#hash.update(bytes);
    await this.#handle.appendFile(bytes);
    this.#unflushedBytes += bytes.length;
    if (this.#unflushedBytes < FLUSHED_BYTES) return;
    await this.#handle.datasync();
    this.#unflushedBytes = 0;
  }

  /** Gives the file its name: `name`, or the result of `name` for its hash. If that fails, no draft stays. */
  async keep(name: string | ((sha256: string) => string)): Promise<BackupFile> {
    return this.#kept(name).catch((error) => closeAfter(error, () => this.abandon()));
  }

  async #kept(name: string | ((sha256: string) => string)): Promise<BackupFile> {
    await this.#flush();
    await this.#handle.sync();
    await this.#handle.close();
    const sha256 = this.#hash.digest("hex");
    const file = typeof name === "string" ? name : name(sha256);
    await rename(join(this.#folder, this.draft), join(this.#folder, file));
    flushFolder(this.#folder);
    return { file, bytes: this.#bytes, sha256 };
  }

  /** Closes and removes the draft. A second call does nothing. */
  async abandon(): Promise<void> {
    await closeAll(
      () => this.#handle.close(),
      () => rmSync(join(this.#folder, this.draft), { force: true }),
    );
  }
}

/** Process, container, and what is written. Earlier versions named no container, and the first of them nothing but the process. */
const DRAFT = /^draft\.(\d+)(?:-([0-9a-f]+)-[0-9a-f]+)?(?:\.([a-z]+))?\.partial$/;
/** Milliseconds after which a draft is a leftover, whoever made it. That of a manifest lasts a moment, and is in the way of others. */
const MANIFEST_MS = 10 * 60_000;
const LEFT_MS = 24 * 60 * 60_000;

/**
 * Removes drafts of this process and of those that ended before they were done. Of a process in another container that is not
 * known, and one that runs may have got the number of one that ended: such drafts stay for a while.
 */
export function removeDrafts(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, number, of, what] = DRAFT.exec(name) ?? [];
    if (number === undefined) continue;
    const pid = Number(number);
    const isKnown = of === undefined || of === container().toString(16);
    const isOver = isKnown && (pid === process.pid || hasEnded(pid));
    const modified = statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs;
    // It is from the future where the clock was set back since.
    const age = modified === undefined ? 0 : Math.abs(Date.now() - modified);
    if (isOver || age > (what === "manifest" ? MANIFEST_MS : LEFT_MS)) rmSync(join(folder, name), { force: true });
  }
}

/**
 * The lines of a file of a backup. The hash is checked at the end: trust the lines only after the iteration has ended
 * without an error.
 * @throws CairnlogError `corrupt-log` if the file is missing, or is not the one that the manifest names
 */
export async function* linesOf(folder: string, { file, bytes, sha256 }: BackupFile): AsyncIterable<Buffer> {
  const hash = createHash("sha256");
  let size = 0;
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of createReadStream(join(folder, file), { highWaterMark: CHUNK_BYTES })) {
      hash.update(chunk);
      size += chunk.length;
      const data = rest.length ? Buffer.concat([rest, chunk]) : (chunk as Buffer);
      let start = 0;
      for (let end = data.indexOf(LINE_FEED); end >= 0; end = data.indexOf(LINE_FEED, start)) {
        yield data.subarray(start, end);
        start = end + 1;
      }
      rest = data.subarray(start);
    }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
    throw new CairnlogError("corrupt-log", `The backup's file ${file} is missing.`, { cause });
  }
  if (size !== bytes || hash.digest("hex") !== sha256)
    throw new CairnlogError(
      "corrupt-log",
      `The backup's file ${file} is not the one that was written: its hash differs.`,
    );
}
