/**
 * Publishes the entries of a tiled log beside its tiles: bundles, an index, and the operator's keys. Entries are compared with
 * the leaf hashes of the tree before they are put.
 *
 * If we crash here: bundles that were put are read again by the next run, and are right or refused. A run of the index counts
 * when it has its fence, which is put last.
 */

import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync } from "node:zlib";
import { withholdingIn } from "../../engine/verify/events/withheld.js";
import type { Entry, OperatorKeys } from "../../engine/verify/index.js";
import { ClientError } from "../client/base/error.js";
import type { LogEnd } from "../client/base/types.js";
import type { AuthenticTiles } from "../client/log/authentic.js";
import { FULL_TILE, HASH_BYTES } from "../client/log/served.js";
import { type BundledEntry, bundleFault, leafIndexOf, parseBundle } from "../client/static/bundle.js";
import { goesOn, logEndOf } from "../client/static/end.js";
import { entriesPath, type LeafRange, OPERATOR_KEY, parseRunPath, runPath, runsOf } from "../client/static/layout.js";
import { isCovered, newRuns, objectsOf, readRun, recordsOfBundle, sortedRecords } from "./runs.js";
import { compressedBundle, type EntrySource, headFault } from "./source.js";
import { LEFT_FOR_MS, type Stored, type Target } from "./target.js";
import { takeBack, withoutLeaf } from "./withheld.js";

// The explorer beside published entries: a page that reads them, and proves them in its reader's browser. Its parts have hashes in
// their names and are made once; the page itself is replaced by that of another version.
//
// If we crash here: parts without their page, which the next run goes on with. The page comes last.

/** What `npm run build` has made of server/explorer. */
const FOLDER = fileURLToPath(new URL("../explorer/", import.meta.url));
const PAGE = "index.html";
const PARTS = "explorer";
/** In every version of the page. Another page is somebody else's, and stays. */
const OURS = '<meta name="generator" content="cairnlog"';
const PART = /^explorer\/[\w.-]+-[\w-]{8}\.(?:js|css|svg)$/;

const built = (path: string): Buffer => brotliDecompressSync(readFileSync(join(FOLDER, `${path}.br`)));

/** Paths of the parts that the page loads. */
const parts = (): readonly string[] =>
  (JSON.parse(readFileSync(join(FOLDER, "static.json"), "utf8")) as string[]).map((name) => `${PARTS}/${name}`);

/**
 * Puts the page and its parts.
 * @param create makes an object that is not there
 * @param isAudit whether parts are looked for although the page is there
 * @returns whether it is there now; not if somebody else's is
 */
export async function putPage(
  target: Target,
  create: (path: string, bytes: Uint8Array) => Promise<boolean>,
  isAudit: boolean,
): Promise<boolean> {
  const page = built("static.html");
  const there = await target.read(PAGE);
  if (there && !new TextDecoder().decode(there.bytes).includes(OURS)) return false;
  const isSame = there !== undefined && Buffer.compare(there.bytes, page) === 0;
  if (!isSame || isAudit) for (const path of parts()) await create(path, built(path));
  // Of two publishers of other versions the last one wins: either page reads what is there.
  if (!isSame && !(await create(PAGE, page)) && there) await target.replace(PAGE, page, there);
  return true;
}

/** Parts of other versions, if those of this one are a day old: nobody has a page open that loads them. */
export async function oldParts(target: Target): Promise<readonly string[]> {
  const current = new Set(parts());
  const young = new Set(current);
  const others: string[] = [];
  for await (const { path, modified } of target.list(PARTS)) {
    if (!current.has(path) && PART.test(path)) others.push(path);
    if (Date.now() - modified > LEFT_FOR_MS) young.delete(path);
  }
  return young.size ? [] : others;
}

const sha256 = (bytes: Uint8Array): Uint8Array => hash("sha256", bytes, "buffer");

/** Puts objects, and counts them. */
export interface Maker {
  /** @returns whether it was made; false if there is one */
  create(path: string, bytes: Uint8Array): Promise<boolean>;
  /** Makes an object. @throws WrongTarget if there is another one */
  make(path: string, bytes: Uint8Array): Promise<void>;
  /** Replaces a key by the one that follows on it. @throws if another publisher has come further meanwhile */
  replaceKey(path: string, bytes: Uint8Array, before: Stored): Promise<void>;
  /** The error for an object that is not that of the log, or is gone since it was there. */
  wrong(path: string, isGone?: boolean, why?: string): Error;
}

export class Content {
  readonly #target: Target;
  readonly #entries: EntrySource;
  readonly #maker: Maker;
  /** Whether bundles are read before they are fetched: until one is missing. */
  #isReading: boolean;
  readonly #comparesAll: boolean;
  #operators: Promise<OperatorKeys> | undefined;
  /** Number of a full bundle → its records. */
  readonly #records = new Map<number, Uint8Array>();
  #size = 0;
  #newest: Entry | undefined;
  /** Entries that withhold the payload of another one, of the bundles that were taken. */
  readonly #withholding: Entry[] = [];

  /** @param comparesAll whether everything is read, also behind what is missing */
  constructor(target: Target, entries: EntrySource, maker: Maker, comparesAll: boolean) {
    this.#target = target;
    this.#entries = entries;
    this.#maker = maker;
    this.#comparesAll = comparesAll;
    this.#isReading = true;
  }

  /** Whether a target has all that belongs to a tree of this size. */
  static async isWhole(target: Target, size: number): Promise<boolean> {
    const [index, width] = [Math.floor(size / FULL_TILE), size % FULL_TILE];
    const paths = [
      OPERATOR_KEY,
      ...(width ? [entriesPath(index, width)] : []),
      ...runsOf(size).map((run) => runPath(run, "fence")),
    ];
    for (const path of paths) if (!(await target.read(path))) return false;
    return true;
  }

  /**
   * Begins with a tree, before anything of it is put.
   * @param known size of the tree whose entries are there
   * @throws GoesOn if these have an end; WrongTarget; ClientError; the target's errors
   */
  async begin(known: number, tiles: AuthenticTiles): Promise<void> {
    this.#size = tiles.size;
    if (!known) return;
    const index = Math.floor((known - 1) / FULL_TILE);
    const width = known - index * FULL_TILE;
    const path = entriesPath(index, width);
    const bytes = (await this.#target.read(path))?.bytes;
    const hashes = (await tiles.tile(0, index)).subarray(0, width * HASH_BYTES);
    if (bytes) await this.#checkedLeft(path, bytes, index, hashes);
  }

  /** How the log ended, when the newest bundle was taken; null if it may grow. */
  get end(): LogEnd | null {
    return logEndOf(this.#newest, this.#size);
  }

  /**
   * Publishes the entries of a bundle.
   * @param hashes of its leaves
   * @throws ClientError, `GoesOn` for one that has the log's end before its own; WrongTarget; the target's errors
   */
  async take(index: number, hashes: Uint8Array): Promise<void> {
    const width = hashes.length / HASH_BYTES;
    const path = entriesPath(index, width);
    const entries = (await this.#left(path, index, hashes)) ?? (await this.#made(path, index, hashes));
    for (const { entry } of entries) if (withholdingIn(entry)) this.#withholding.push(entry);
    if (width === FULL_TILE) this.#records.set(index, recordsOfBundle(entries, index));
    if (index * FULL_TILE + width === this.#size) this.#newest = entries.at(-1)?.entry;
  }

  #expectNoMore(entries: readonly BundledEntry[], index: number): void {
    const broken = goesOn(entries, index, this.#size);
    if (broken) throw broken;
  }

  /** A bundle that an earlier run has left, or an earlier round. */
  async #left(path: string, index: number, hashes: Uint8Array): Promise<readonly BundledEntry[] | undefined> {
    if (!this.#isReading) return undefined;
    const bytes = (await this.#target.read(path))?.bytes;
    if (!bytes && !this.#comparesAll) this.#isReading = false;
    return bytes && this.#checkedLeft(path, bytes, index, hashes);
  }

  async #checkedLeft(path: string, bytes: Uint8Array, index: number, hashes: Uint8Array) {
    const entries = await parseBundle(bytes);
    const fault = entries ? await this.#fault(entries, index, hashes) : "It is no bundle.";
    if (fault !== undefined) throw this.#maker.wrong(path, false, fault);
    this.#expectNoMore(entries!, index);
    return entries!;
  }

  async #made(path: string, index: number, hashes: Uint8Array): Promise<readonly BundledEntry[]> {
    const { entries, gzip } = await this.#entries.bundle(index, hashes.length / HASH_BYTES);
    const fault = await this.#fault(entries, index, hashes);
    if (fault !== undefined)
      throw new ClientError("malformed-answer", `The source shows other entries than its tree has. ${fault}`);
    this.#expectNoMore(entries, index);
    if (await this.#maker.create(path, gzip ?? (await compressedBundle(entries)))) return entries;
    // Compressed by another release of zlib, the same text has other bytes.
    const bytes = (await this.#target.read(path))?.bytes;
    if (!bytes) throw this.#maker.wrong(path, true);
    return this.#checkedLeft(path, bytes, index, hashes);
  }

  async #fault(entries: readonly BundledEntry[], index: number, hashes: Uint8Array): Promise<string | undefined> {
    return bundleFault(entries, index, hashes, sha256) ?? headFault(entries, await this.#signers());
  }

  /** The keys that sign the heads, as they are when the round's checkpoint is known. */
  #signers(): Promise<OperatorKeys> {
    this.#operators ??= this.#target.read(OPERATOR_KEY).then((stored) => {
      const pinned = stored && (JSON.parse(new TextDecoder().decode(stored.bytes)) as { public_key: string });
      return this.#entries.operators(pinned?.public_key ?? null);
    });
    return this.#operators;
  }

  /**
   * Publishes the index and the keys of a tree, whose bundles were taken.
   * @param from size of the tree whose index is there; bundles from it on were taken
   */
  async finish(size: number, from: number): Promise<void> {
    await this.#takeBack();
    const before = runsOf(from);
    for (const run of newRuns(size, before)) {
      const pieces: Uint8Array[] = [];
      for (const part of before) if (isCovered(part, run)) pieces.push(await readRun(this.#target, part));
      const first = Math.max(run.from, from - (from % FULL_TILE));
      for (let index = first / FULL_TILE; index * FULL_TILE < run.to; index++) pieces.push(this.#records.get(index)!);
      for (const [path, bytes] of objectsOf(run, sortedRecords(pieces))) await this.#maker.make(path, bytes);
    }
    await this.#keepKeys(size);
  }

  /** Takes out of what was published before, and of what was just fetched, what is withheld since. */
  async #takeBack(): Promise<void> {
    for (const by of this.#withholding) {
      const { entry_id, member } = withholdingIn(by)!;
      const leafIndex = await this.#leafIndexOf(entry_id);
      await takeBack(this.#target, { by, leafIndex }, (path) => this.#maker.wrong(path, true));
      const index = Math.floor(leafIndex / FULL_TILE);
      const records = this.#records.get(index);
      if (records && !member) this.#records.set(index, withoutLeaf(records, leafIndex));
    }
  }

  /** The place of an entry, all of which are in the target by now. */
  async #leafIndexOf(id: number): Promise<number> {
    const leafIndex = await leafIndexOf(id, this.#size, async (index) => {
      const path = entriesPath(index, Math.min(FULL_TILE, this.#size - index * FULL_TILE));
      const bytes = (await this.#target.read(path))?.bytes;
      const entries = bytes && (await parseBundle(bytes));
      if (!entries) throw this.#maker.wrong(path, !bytes);
      return entries;
    });
    if (leafIndex !== undefined) return leafIndex;
    throw new ClientError("malformed-answer", `The log withholds the payload of entry ${id}, which it does not have.`);
  }

  async #keepKeys(size: number): Promise<void> {
    const operators = await this.#signers();
    const chain = operators.upTo(Math.max(1, size));
    const { key_id: fingerprint, algorithm, public_key } = chain.at(-1)!;
    const bytes = Buffer.from(`${JSON.stringify({ fingerprint, algorithm, public_key, operators: chain })}\n`);
    if (await this.#maker.create(OPERATOR_KEY, bytes)) return;
    const there = await this.#target.read(OPERATOR_KEY);
    if (!there || Buffer.compare(there.bytes, bytes) === 0) return;
    // The chain goes on from the key that was there: `#signers` has seen to it.
    await this.#maker.replaceKey(OPERATOR_KEY, bytes, there);
  }
}

/** Runs of the index that a larger one replaced a day ago, by paths of a listing. */
export async function oldRuns(target: Target, size: number): Promise<readonly string[]> {
  const current = runsOf(size);
  const fences: { readonly run: LeafRange; readonly isOld: boolean }[] = [];
  const paths: { readonly run: LeafRange; readonly path: string }[] = [];
  for await (const { path, modified } of target.list("index")) {
    const run = parseRunPath(path);
    if (!run) continue;
    paths.push({ run, path });
    if (path === runPath(run, "fence")) fences.push({ run, isOld: Date.now() - modified > LEFT_FOR_MS });
  }
  const isCurrent = ({ from, to }: LeafRange) => current.some((run) => run.from === from && run.to === to);
  const isReplaced = (run: LeafRange) =>
    fences.some((other) => other.isOld && other.run.to <= size && isCovered(run, other.run));
  return paths.flatMap(({ run, path }) => (!isCurrent(run) && isReplaced(run) ? [path] : []));
}
