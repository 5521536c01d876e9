/**
 * The newest head that was shown, kept in a file beside the log: what tells a log that shrank, because an old copy of it
 * was put back, from one that is complete. Written after the fact and without waiting for the disk, so it costs appends
 * nothing; it may lag behind the log, and never runs ahead of it.
 */
import { readFileSync } from "node:fs";
import { CairnlogError } from "../../base/error.js";
import { replaceFile } from "../../base/files.js";
import { Lock } from "../../base/lock.js";
import { PRIVATE_FILE } from "../../store/lmdb/private.js";
import type { TreeVersion } from "../../verify/tree/merkle.js";
import { TREE_HEAD, type TreeHead } from "../../verify/tree/treehead.js";
import type { Log } from "../log.js";
import { TREE_VERSIONS } from "../tree/tree.js";

const INTERVAL_MS = 1_000;

export class PublishedHead {
  readonly #file: string;
  readonly #log: Pick<Log, "size" | "treeHead" | "consistencyProof">;
  #written = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #writing = new Lock();

  constructor(file: string, log: Pick<Log, "size" | "treeHead" | "consistencyProof">) {
    this.#file = file;
    this.#log = log;
  }

  /**
   * Compares the log with what was shown of it.
   * @throws CairnlogError `corrupt-log` when the log is shorter, or another one
   */
  check(): void {
    const head = readPublishedHead(this.#file);
    if (!head) return;
    const known = `a head of ${head.tree_size} was signed and shown`;
    const contradiction = compareHead(this.#log, head, known, setBack(this.#file));
    if (contradiction) throw contradiction;
  }

  /** Begins to keep the file up to date. A log that is behind it, and catches up with others, leaves it as it is until then. */
  start(): void {
    this.#written = readPublishedHead(this.#file)?.tree_size ?? 0;
    this.#timer = setInterval(() => this.#write(), INTERVAL_MS).unref();
  }

  /** Writes the newest head, and no more after it. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#write();
    await this.#writing.settled();
  }

  #write(): void {
    const head = this.#log.treeHead();
    if (!head || head.tree_size <= this.#written) return;
    const before = this.#written;
    this.#written = head.tree_size;
    const text = `${JSON.stringify(head)}\n`;
    // The disk is full, or the folder gone: appends say so, and this is tried again with the next head.
    this.#writing
      .run(() => replaceFile(this.#file, text, PRIVATE_FILE, false))
      .catch(() => {
        this.#written = before;
      });
  }
}

/**
 * Compares a log with a head that it has signed.
 * @param known what is known of the head: `a head of 7 was signed and shown`
 * @param advice what the operator can do, in sentences
 * @returns `corrupt-log` when the log is shorter, or another one
 */
export function compareHead(
  log: Pick<Log, "size" | "consistencyProof">,
  { tree_size, root_hash }: TreeHead,
  known: string,
  advice: string,
): CairnlogError | null {
  const { size } = log;
  if (tree_size > size)
    return new CairnlogError(
      "corrupt-log",
      `The log shrank: it has ${size} entries, but ${known}. Going on would sign other entries in the place of those. ${advice}`,
    );
  // The root, not the head: imported entries have none. Of which tree it is was not signed: whoever shows a head may change that.
  const rootUnder = (version: TreeVersion) => log.consistencyProof(tree_size, tree_size, version).to_root;
  if (TREE_VERSIONS.some((version) => rootUnder(version) === root_hash)) return null;
  return new CairnlogError(
    "corrupt-log",
    `The log is not the one that was shown: its first ${tree_size} entries have another root than the head, although ${known}. ${advice}`,
  );
}

/** What the operator can do about a log that does not go on from what is in `file`: sentences. */
export const setBack = (file: string): string =>
  `Put the newest data back, or restore the newest backup or mirror (cairnlog restore). Only if you know that nobody has seen more than is here: remove ${file}.`;

/** The head in such a file; undefined when there is none that is whole. @throws CairnlogError `storage-failed` */
export function readPublishedHead(file: string): TreeHead | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new CairnlogError("storage-failed", `${file} cannot be read.`, { cause });
  }
  try {
    const head = JSON.parse(text) as TreeHead;
    if (TREE_HEAD(head, "") === undefined) return head;
  } catch {
    // After a power failure the file may be empty or cut short: as good as none.
  }
  return undefined;
}
