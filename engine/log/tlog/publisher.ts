/**
 * Publishes the checkpoints of the RFC 6962 tree (c2sp.org/tlog-checkpoint): at once when the log was idle, and at most
 * one in an interval while it grows. It belongs to the writer's thread, and an append waits for none of it.
 *
 * Two checkpoints of one log must never contradict each other, because witnesses remember them. Size and root follow
 * from the entries, and a checkpoint is made only for a size that is on disk. In addition, each one is proven to be
 * consistent with the one before, by the verifier that others use, before it is signed.
 *
 * If we crash here:
 * - before the checkpoint is in its file: nobody has seen it, and the next start signs one of at least this size;
 * - after that and before anybody is shown it: the next start shows it.
 * So a checkpoint that was shown is in the file, or a later one is, and the next start checks the log against the file.
 */
import { readFileSync } from "node:fs";
import { CairnlogError } from "../../base/error.js";
import { replaceFile } from "../../base/files.js";
import { type OperatorKey, signatures } from "../../crypto/signer/operator-key.js";
import { PRIVATE_FILE } from "../../store/lmdb/private.js";
import { fromHex } from "../../verify/bytes/encoding.js";
import { parsePublicKey } from "../../verify/keys/publickey.js";
import { type NoteKey, noteKey } from "../../verify/note/key.js";
import { type Checkpoint, checkpointText, parseCheckpointText, parseNote, signedNote } from "../../verify/note/note.js";
import { verifyNote } from "../../verify/note/verify.js";
import { verifyConsistency } from "../../verify/tlog/rfc6962.js";
import { Rfc6962Growth } from "../rfc6962/growth.js";
import type { LogView } from "../view/view.js";
import { setBack } from "./published.js";

/** Milliseconds after which a checkpoint that could not be made is tried again. */
const RETRY_MS = 1_000;

interface PublisherParts {
  readonly log: Pick<LogView, "size" | "rfc6962" | "observeSize">;
  /** The first line of every checkpoint, and the name of the key: a name that `isNoteName` accepts. */
  readonly origin: string;
  /** Signs the checkpoints; its key is Ed25519. */
  readonly signer: Pick<OperatorKey, "public" | "sign">;
  /** Holds the newest checkpoint that was published. */
  readonly file: string;
  /** Milliseconds from one checkpoint to the next. */
  readonly intervalMs: number;
  /** Called with the reason when no checkpoint can be made, and with null when that is over. */
  readonly told: (trouble: CairnlogError | null) => void;
  /** Called with every checkpoint when it is on disk, and at the start with the one from before, if `signer` signed it. */
  readonly published?: (checkpoint: PublishedCheckpoint) => void;
}

/** A checkpoint, as it is shown. */
export interface PublishedCheckpoint extends Checkpoint {
  readonly note: string;
}

export class CheckpointPublisher {
  readonly #parts: PublisherParts;
  readonly #growth: Rfc6962Growth;
  /** The key with which others verify the checkpoints. */
  readonly key: NoteKey;
  #published: PublishedCheckpoint | null = null;
  /** Whether the checkpoint that is shown is signed by `key`. After a rotation of the operator key it is not. */
  #isCurrent = false;
  /** When the last checkpoint was begun, by the monotonic clock. */
  #begun = Number.NEGATIVE_INFINITY;
  #unobserve: () => void = () => {};
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> | null = null;
  #trouble: CairnlogError | null = null;
  readonly #stopping = new AbortController();
  /** Ends the wait for a signature. */
  #abandon: () => void = () => {};

  /** @throws CairnlogError `invalid-key` unless the signer's key is Ed25519; `invalid-input` for an origin that is no name */
  constructor(parts: PublisherParts) {
    this.#parts = parts;
    this.#growth = new Rfc6962Growth(parts.log.rfc6962);
    this.key = noteKey(parts.origin, parsePublicKey(parts.signer.public.pem));
  }

  /**
   * Reads the checkpoint that was published last, and compares the log with it. This takes milliseconds, or 0.2 s for a
   * million entries if the nodes of the RFC 6962 tree were lost.
   * @param told the newest that another machine has published of this log, if one has; a key of the log has signed it
   * @throws CairnlogError `corrupt-log` when the log is shorter, or another one; `storage-failed`
   */
  async open(told: PublishedCheckpoint | null = null): Promise<void> {
    const { file } = this.#parts;
    const kept = publishedCheckpoint(file);
    await this.#growth.extend(0);
    const adviceToNode = "Compare this node's log with the journal: cairnlog replicate check.";
    const contradiction =
      (kept && (await this.compare(kept, `the checkpoint in ${file}`, setBack(file)))) ??
      (told && (await this.compare(told, "the checkpoint that was told in the journal", adviceToNode)));
    if (contradiction) throw contradiction;
    const shown = told && told.treeSize > (kept?.treeSize ?? -1) ? told : kept;
    await this.#growth.recheck(shown?.treeSize ?? 0);
    if (!shown) return;
    // What another machine has published is signed anew: it may have lines of witnesses.
    this.#isCurrent =
      shown === kept && shown.origin === this.key.name && (await verifyNote(shown.note, [this.key])) !== null;
    this.#published = shown;
  }

  /**
   * Compares the log with a checkpoint that it has signed.
   * @param where what has the checkpoint: `the checkpoint in FILE`
   * @param advice what the operator can do, in sentences
   * @returns `corrupt-log` when the log is shorter, or another one
   * @throws CairnlogError when the tree's nodes cannot be read, or cannot be made: that says nothing about the log
   */
  compare(checkpoint: Omit<Checkpoint, "origin">, where: string, advice: string): Promise<CairnlogError | null> {
    return compareCheckpoint(this.#parts.log, this.#growth, checkpoint, where, advice);
  }

  /** Begins to publish. The log is at least as large as what is published. */
  start(): void {
    this.#unobserve = this.#parts.log.observeSize(() => this.#due());
    if (this.#isCurrent && this.#published) this.#parts.published?.(this.#published);
    this.#due();
  }

  /**
   * The newest checkpoint.
   * @throws CairnlogError `not-found` before the first one
   */
  newest(): string {
    if (this.#published) return this.#published.note;
    throw new CairnlogError("not-found", "There is no checkpoint yet: the nodes of the tree are being made.");
  }

  /** Size of the newest checkpoint; null before the first one. */
  get size(): number | null {
    return this.#published?.treeSize ?? null;
  }

  /** Makes no more checkpoints; resolves when nothing runs. */
  async stop(): Promise<void> {
    this.#stopping.abort(closed());
    this.#abandon();
    this.#unobserve();
    if (this.#timer) clearTimeout(this.#timer);
    await this.#working;
  }

  /** Called with every batch, so it only looks whether there is something to do. */
  #due(): void {
    if (this.#working || this.#timer || this.#stopping.signal.aborted) return;
    if (this.#isCurrent && this.#published?.treeSize === this.#parts.log.size) return;
    const wait = this.#trouble ? RETRY_MS : this.#begun + this.#parts.intervalMs - performance.now();
    // Never in the caller's turn: it is releasing a batch.
    this.#timer = setTimeout(() => this.#run(), Math.max(0, wait));
    this.#timer.unref();
  }

  #run(): void {
    this.#timer = null;
    this.#begun = performance.now();
    this.#working = this.#publish()
      .then(() => this.#tell(null))
      .catch((error: unknown) => this.#tell(asCoded(error)))
      .finally(() => {
        this.#working = null;
        this.#due();
      });
  }

  #tell(trouble: CairnlogError | null): void {
    const isNews = trouble?.message !== this.#trouble?.message;
    this.#trouble = trouble;
    if (isNews && !this.#stopping.signal.aborted) this.#parts.told(trouble);
  }

  async #publish(): Promise<void> {
    const { log, origin, signer, file } = this.#parts;
    const { size: treeSize } = log;
    await this.#growth.extend(treeSize, this.#stopping.signal);
    const checkpoint = { origin, treeSize, rootHash: rootAt(log, treeSize) };
    this.#checkConsistency(checkpoint);
    const text = checkpointText(checkpoint);
    // Nothing looked at it since the last node was written, and nothing ends the wait for a signer that begins after a stop.
    this.#stopping.signal.throwIfAborted();
    const signature = await this.#unlessStopped(signatures(signer, signer.public, [Buffer.from(text)]));
    const note = signedNote(text, origin, fromHex(this.key.id), signature);
    await replaceFile(file, note, PRIVATE_FILE);
    this.#published = { ...checkpoint, note };
    this.#isCurrent = true;
    this.#parts.published?.(this.#published);
  }

  /** What a signer answers, which may be far away: a stop does not wait for it. @throws CairnlogError `signer-unavailable` */
  #unlessStopped<T>(signing: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#abandon = () => reject(closed());
      signing.then(resolve, (cause: unknown) => {
        reject(new CairnlogError("signer-unavailable", "The key of the checkpoints cannot sign.", { cause }));
      });
    });
  }

  /** Damage on disk could make another root of the nodes. @throws CairnlogError `corrupt-log` */
  #checkConsistency({ treeSize, rootHash }: Checkpoint): void {
    const before = this.#published;
    if (!before) return;
    const claim = {
      fromSize: before.treeSize,
      toSize: treeSize,
      fromRoot: Buffer.from(before.rootHash, "hex"),
      toRoot: Buffer.from(rootHash, "hex"),
      proof: this.#parts.log.rfc6962.consistencyProof(before.treeSize, treeSize),
    };
    if (!verifyConsistency(claim))
      throw new CairnlogError(
        "corrupt-log",
        `The root of ${treeSize} entries does not go on from the checkpoint of ${before.treeSize}, so it is not signed. The nodes on disk may be damaged: stop the service; cairnlog fsck --rebuild makes them again.`,
      );
  }
}

type CheckedLog = Pick<LogView, "size" | "rfc6962">;

const rootAt = ({ rfc6962 }: CheckedLog, size: number): string => Buffer.from(rfc6962.root(size)).toString("hex");

/** See `CheckpointPublisher.compare`. */
async function compareCheckpoint(
  log: CheckedLog,
  growth: Rfc6962Growth,
  { treeSize, rootHash }: Omit<Checkpoint, "origin">,
  where: string,
  advice: string,
): Promise<CairnlogError | null> {
  if (treeSize > log.size)
    return new CairnlogError(
      "corrupt-log",
      `The log shrank: it has ${log.size} entries, but ${where} has ${treeSize}. Going on would sign other entries in the place of those. ${advice}`,
    );
  await growth.extend(treeSize);
  if (rootAt(log, treeSize) === rootHash) return null;
  return new CairnlogError(
    "corrupt-log",
    `The log is not the one that was published: its first ${treeSize} entries have another root than ${where}. ${advice}`,
  );
}

/**
 * Compares a log that is open to be written with the checkpoint in a file, if there is one.
 * @throws CairnlogError `corrupt-log` when the log is shorter, or another one; `storage-failed`
 */
export async function checkCheckpoint(log: CheckedLog, file: string): Promise<void> {
  const kept = publishedCheckpoint(file);
  const growth = new Rfc6962Growth(log.rfc6962);
  const contradiction =
    kept && (await compareCheckpoint(log, growth, kept, `the checkpoint in ${file}`, setBack(file)));
  if (contradiction) throw contradiction;
}

/**
 * The checkpoint in such a file, with unverified signatures; undefined when there is none.
 * @throws CairnlogError `storage-failed`
 */
export function publishedCheckpoint(file: string): PublishedCheckpoint | undefined {
  try {
    // An empty file, or something else: as good as none.
    return checkpointIn(readFileSync(file, "utf8"));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new CairnlogError("storage-failed", `${file} cannot be read.`, { cause });
  }
}

/** The checkpoint in a note, with unverified signatures; undefined when it has none. */
export function checkpointIn(note: string): PublishedCheckpoint | undefined {
  const parsed = parseNote(note);
  const checkpoint = parsed && parseCheckpointText(parsed.text);
  return checkpoint && { ...checkpoint, note };
}

const closed = (): CairnlogError => new CairnlogError("closed", "The service is shutting down.");

/** The reason why no checkpoint can be made. */
function asCoded(error: unknown): CairnlogError {
  if (error instanceof CairnlogError) return error;
  const { message } = error as Error;
  return new CairnlogError("storage-failed", `No checkpoint could be made: ${message}`, { cause: error });
}
