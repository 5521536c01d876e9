/**
 * Reads a log of plain files, as `cairnlog publish --entries` makes it, from any web server. Nothing is believed but the keys of
 * the policy: every entry is compared with the tree of a checkpoint that a log of the policy has signed, with a quorum of its
 * witnesses. What the index leaves out is not noticed.
 */
import { toHex } from "../../../engine/verify/bytes/encoding.js";
import { isCut, isWithheld, withholdingFault } from "../../../engine/verify/events/withheld.js";
import {
  type Entry,
  OperatorKeys,
  type Policy,
  type PolicyVerdict,
  type PublicKey,
  parseIJson,
  parsePublicKey,
  parseVkey,
  verifyByPolicy,
} from "../../../engine/verify/index.js";
import { peakPositions } from "../../../engine/verify/tree/merkle.js";
import { ClientError } from "../base/error.js";
import { Http } from "../base/http.js";
import type { LogEnd } from "../base/types.js";
import { AuthenticTiles, WrongTile } from "../log/authentic.js";
import { type Files, FULL_TILE, HASH_BYTES, NotServed, ServedTiles } from "../log/served.js";
import { type BundledEntry, bundleFault, leafIndexOf, parseBundle } from "./bundle.js";
import { goesOn, logEndOf, type PublishedEntry, proofFileIn } from "./end.js";
import { keyFrom, type PublishedKey } from "./key.js";
import { entriesPath, type LeafRange, OPERATOR_KEY, runPath, runsOf } from "./layout.js";
import {
  type Fence,
  HASH_RECORD_BYTES,
  leavesIn,
  lookupHashes,
  PART_RECORDS,
  readFence,
  recordsOf,
  termOf,
} from "./run.js";

/** Bundles that are kept in memory. One whose text is longer than `LONG` takes the place of all that are there. */
const KEPT_BUNDLES = 16;
const LONG = 2 ** 24;

export type { PublishedEntry } from "./end.js";
export type { PublishedKey } from "./key.js";

export interface StaticLogOptions {
  /** The address before `/checkpoint`, or what reads the files from elsewhere. */
  readonly log: string | Files;
  /** The log's key, or its keys and the witnesses that must have cosigned (c2sp.org/tlog-policy). */
  readonly trusted: string | Policy;
  /** Default: the global one. */
  readonly fetch?: typeof fetch | undefined;
}

/**
 * Opens a log of plain files at its newest checkpoint.
 * @throws TypeError for an invalid address; CairnlogError `invalid-key`; ClientError as `StaticLog.open` does
 */
export function openStaticLog({ log, trusted, fetch: fetcher = fetch }: StaticLogOptions): Promise<StaticLog> {
  const files = typeof log === "string" ? new Http(log, fetcher) : log;
  if (typeof trusted !== "string") return StaticLog.open(files, trusted);
  const logs = [{ key: parseVkey(trusted), url: null }];
  return StaticLog.open(files, { logs, witnesses: [], groups: [], quorum: null });
}

export class StaticLog {
  readonly #served: ServedTiles;
  readonly #tiles: AuthenticTiles;
  readonly #bundles = new Map<number, Promise<readonly BundledEntry[]>>();
  readonly #fences = new Map<string, Promise<Fence>>();
  /** The checkpoint, and who signed and cosigned it. */
  readonly verdict: PolicyVerdict;
  /** The checkpoint as it was read. */
  readonly note: string;

  /** A log whose checkpoint and tiles are verified: `open` does that. */
  constructor(served: ServedTiles, tiles: AuthenticTiles, verdict: PolicyVerdict, note: string) {
    this.#served = served;
    this.#tiles = tiles;
    this.verdict = verdict;
    this.note = note;
  }

  /**
   * Reads the newest checkpoint. The log stays as it was then; open it again for what came later.
   * @throws ClientError `log-misbehaved` for a checkpoint that no log of the policy has signed, or without a quorum of witnesses, or
   *   tiles that do not make its root; `NotServed` if there is none
   */
  static async open(files: Files, policy: Policy): Promise<StaticLog> {
    const served = new ServedTiles(files);
    const note = await served.checkpoint();
    const verdict = await verifyByPolicy(note, policy);
    if (!verdict)
      throw new ClientError(
        "log-misbehaved",
        `The checkpoint at ${files.server} is not signed by a log that you trust.`,
      );
    if (!verdict.hasQuorum)
      throw new ClientError("log-misbehaved", `The checkpoint at ${files.server} has no quorum of the witnesses.`);
    const { treeSize, rootHash } = verdict.checkpoint;
    const tiles = await judged(
      served,
      AuthenticTiles.open(treeSize, rootHash, {
        served: (level, index, width) => served.tile(level, index, width),
        kept: () => undefined,
      }),
    );
    return new StaticLog(served, tiles, verdict, note);
  }

  /** Number of entries. */
  get size(): number {
    return this.#tiles.size;
  }

  /** The entry with this id. @throws ClientError `not-found`; `log-misbehaved`; `NotServed` where entries are not published */
  async entry(id: number): Promise<PublishedEntry> {
    return this.#checked(await this.#find(id));
  }

  /** A payload that is missing must be withheld by another entry. */
  async #checked(found: PublishedEntry): Promise<PublishedEntry> {
    const { entry } = found;
    if (!isCut(entry)) return found;
    const by = isWithheld(entry) ? await this.#find(entry.withheld_by).catch(orNotFound) : undefined;
    const fault = withholdingFault(entry, by?.entry);
    if (fault === undefined) return found;
    throw this.#misbehaved(`Entry ${entry.id}: ${fault}`);
  }

  async #find(id: number): Promise<PublishedEntry> {
    const leafIndex = await leafIndexOf(id, this.size, (index) => this.bundle(index));
    if (leafIndex === undefined)
      throw new ClientError("not-found", `There is no entry ${id} among the ${this.size} of this checkpoint.`);
    const { entry } = (await this.bundle(Math.floor(leafIndex / FULL_TILE)))[leafIndex % FULL_TILE]!;
    return { entry, leafIndex };
  }

  /**
   * How the log ended, and where it goes on; null if it may grow. Its newest entry says so.
   * @throws ClientError as `entry` does
   */
  async end(): Promise<LogEnd | null> {
    return logEndOf((await this.newest())?.entry, this.size);
  }

  /** The last entry; null if there is none. @throws ClientError as `entry` does */
  async newest(): Promise<PublishedEntry | null> {
    for await (const found of this.entries(Math.max(0, this.size - 1))) return found;
    return null;
  }

  /** Entries from a leaf on, oldest first. @throws ClientError as `entry` does */
  async *entries(from = 0): AsyncGenerator<PublishedEntry, void, undefined> {
    for (let at = from; at < this.size; ) {
      const index = Math.floor(at / FULL_TILE);
      for (const { entry } of (await this.bundle(index)).slice(at % FULL_TILE))
        yield await this.#checked({ entry, leafIndex: at++ });
    }
  }

  /** The entry at a leaf of the tree. @throws ClientError as `entry` does */
  async at(leafIndex: number): Promise<PublishedEntry> {
    if (!Number.isInteger(leafIndex) || leafIndex < 0 || leafIndex >= this.size)
      throw new ClientError("not-found", `There is no leaf ${leafIndex} among the ${this.size} of this checkpoint.`);
    const { entry } = (await this.bundle(Math.floor(leafIndex / FULL_TILE)))[leafIndex % FULL_TILE]!;
    return this.#checked({ entry, leafIndex });
  }

  /**
   * The leaves of the entries that the index has for a document's hash, or for the fingerprint of a key: then of the events of the
   * key. In their order.
   * @param hash SHA-256 in lower-case hex, with or without `sha256:`
   * @throws ClientError as `entry` does; `invalid-input` for what is no hash
   */
  async leavesAbout(hash: string): Promise<readonly number[]> {
    const term = checkedTerm(hash);
    const leaves: number[] = [];
    for (const run of runsOf(this.size)) leaves.push(...(await this.#leaves(run, term)));
    // The unfinished bundle is in no run.
    for await (const { entry, leafIndex } of this.entries(this.size - (this.size % FULL_TILE)))
      if (isAbout(entry, term)) leaves.push(leafIndex);
    // While a publisher takes a record back, another one is there twice.
    return [...new Set(leaves)].sort((a, b) => a - b);
  }

  /**
   * The entries that `leavesAbout` finds.
   * @param leaves those of them that are wanted; by default all
   * @throws ClientError as `leavesAbout` does
   */
  async *about(hash: string, leaves?: readonly number[]): AsyncGenerator<PublishedEntry, void, undefined> {
    const term = checkedTerm(hash);
    for (const leafIndex of leaves ?? (await this.leavesAbout(hash))) {
      const found = await this.at(leafIndex);
      if (isAbout(found.entry, term)) yield found;
      else if (found.entry.payload !== null)
        throw this.#misbehaved(`The index names entry ${found.entry.id} for ${hash}, which it is not about.`);
    }
  }

  /**
   * A key as it stood at this checkpoint, by the entries that the index has about it. An expiration is compared with the clock here.
   * @param fingerprint in either spelling
   * @returns null if none of them records it
   * @throws ClientError as `leavesAbout` does
   */
  async key(fingerprint: string): Promise<PublishedKey | null> {
    const term = checkedTerm(fingerprint);
    const entries: Entry[] = [];
    for await (const { entry } of this.about(term)) entries.push(entry);
    const key = keyFrom(`sha256:${term}`, entries);
    if (!key) return null;
    const { proven: _, ...known } = key;
    return known;
  }

  /** The root of the tree when it had `size` leaves, in hex: that of every checkpoint of this log. @throws ClientError */
  async rootAt(size: number): Promise<string> {
    return toHex(await judged(this.#served, this.#tiles.fold(peakPositions(size))));
  }

  /** The proof that a leaf is in the tree of the checkpoint, from the leaf's sibling to the child of the root. @throws ClientError */
  inclusion(leafIndex: number): Promise<readonly Uint8Array[]> {
    return judged(this.#served, this.#tiles.inclusion(leafIndex));
  }

  /** A proof file (c2sp.org/tlog-proof) with the entry in it, as `client.tlog.proofFile` gives. @throws ClientError */
  async proofFile(found: PublishedEntry): Promise<string> {
    const withholding = isCut(found.entry)
      ? await this.proofFile(await this.entry(found.entry.withheld_by!))
      : undefined;
    return judged(this.#served, proofFileIn(this.#tiles, this.note, found, withholding));
  }

  /**
   * The keys that sign the heads in the bundles: a chain that nothing here proves, but that it holds the pinned key.
   * @param pinned by default the newest one in the chain
   * @throws ClientError; CairnlogError as `OperatorKeys.verify` does
   */
  async operators(pinned?: PublicKey): Promise<OperatorKeys> {
    const bytes = await this.#served.file(`/${OPERATOR_KEY}`).catch((error: unknown) => {
      throw error instanceof NotServed ? this.#missing(error) : error;
    });
    const shown = parseIJson(new TextDecoder().decode(bytes)) as { public_key?: unknown; operators?: unknown } | null;
    return OperatorKeys.verify(shown?.operators, pinned ?? parsePublicKey(String(shown?.public_key)));
  }

  /**
   * The entries of a bundle, each the one in the tree. Signatures of heads are not verified.
   * @throws ClientError `not-found`; `log-misbehaved`, `GoesOn` for a log that goes on behind its end; `NotServed`
   */
  async bundle(index: number): Promise<readonly BundledEntry[]> {
    if (!Number.isInteger(index) || index < 0 || index * FULL_TILE >= this.size)
      throw new ClientError("not-found", `There is no bundle ${index} of the ${this.size} leaves of this checkpoint.`);
    if (this.#bundles.size >= KEPT_BUNDLES && !this.#bundles.has(index))
      this.#bundles.delete(this.#bundles.keys().next().value!);
    return kept(this.#bundles, index, () => this.#read(index));
  }

  async #read(index: number): Promise<readonly BundledEntry[]> {
    const hashes = await judged(this.#served, this.#tiles.tile(0, index));
    const width = hashes.length / HASH_BYTES;
    const entries = await parseBundle(await this.#bundleBytes(index, width), (length) => {
      for (const other of length > LONG ? [...this.#bundles.keys()] : [])
        if (other !== index) this.#bundles.delete(other);
    });
    // A full bundle in place of a partial one has more entries.
    const fault = entries ? bundleFault(entries.slice(0, width), index, hashes) : "It is no bundle.";
    if (fault !== undefined) throw this.#misbehaved(`${this.#served.url}/${entriesPath(index, width)}: ${fault}`);
    const taken = entries!.slice(0, width);
    const broken = goesOn(taken, index, this.size);
    if (broken) throw broken;
    return taken;
  }

  /** A publisher may remove a partial bundle when there is the full one. */
  async #bundleBytes(index: number, width: number): Promise<Uint8Array> {
    try {
      return await this.#served.file(`/${entriesPath(index, width)}`);
    } catch (error) {
      if (!(error instanceof NotServed)) throw error;
      if (width < FULL_TILE)
        return await this.#served.file(`/${entriesPath(index, FULL_TILE)}`).catch(() => {
          throw this.#missing(error);
        });
      throw this.#missing(error);
    }
  }

  /** Leaf indexes that a run has for a term: its fence, and one range of its records. */
  async #leaves(run: LeafRange, term: string): Promise<readonly number[]> {
    const { from, to } = recordsOf(await this.#fence(run), term);
    const found: number[] = [];
    for (let part = Math.floor(from / PART_RECORDS); part * PART_RECORDS < to; part++) {
      const first = part * PART_RECORDS;
      const range = {
        from: (Math.max(from, first) - first) * HASH_RECORD_BYTES,
        to: (Math.min(to, first + PART_RECORDS) - first) * HASH_RECORD_BYTES,
      };
      found.push(...leavesIn(await this.#served.file(`/${runPath(run, part)}`, range), term));
    }
    if (found.some((leaf) => leaf < run.from || leaf >= run.to))
      throw this.#misbehaved(`The index has a record of another run in ${runPath(run, "fence")}.`);
    return found;
  }

  #fence(run: LeafRange): Promise<Fence> {
    const path = runPath(run, "fence");
    return kept(this.#fences, path, () => this.#readFence(path));
  }

  async #readFence(path: string): Promise<Fence> {
    const bytes = await this.#served.file(`/${path}`).catch((error: unknown) => {
      throw error instanceof NotServed ? this.#missing(error) : error;
    });
    const fence = readFence(bytes);
    if (fence) return fence;
    throw this.#misbehaved(`${this.#served.url}/${path} is no fence of an index.`);
  }

  #missing({ status, cause }: NotServed): ClientError {
    const sentence = `${this.#served.url} does not have all entries of its checkpoint: publish them with cairnlog publish --entries.`;
    return new ClientError("not-found", sentence, { status, cause });
  }

  #misbehaved(sentence: string): ClientError {
    return new ClientError("log-misbehaved", sentence);
  }
}

/** What was read under `key`, or is being read. A failure is not kept: the next call asks again. */
function kept<K, T>(known: Map<K, Promise<T>>, key: K, read: () => Promise<T>): Promise<T> {
  const before = known.get(key);
  if (before) return before;
  const reading = read();
  known.set(key, reading);
  reading.catch(() => known.delete(key));
  return reading;
}

/** @throws ClientError `invalid-input` */
function checkedTerm(hash: string): string {
  const term = termOf(hash);
  if (term === undefined) throw new ClientError("invalid-input", `${hash} is no SHA-256 in hexadecimal.`);
  return term;
}

/** @throws the error, unless it says that there is no such entry: it may have come after the checkpoint */
function orNotFound(error: unknown): undefined {
  if (!(error instanceof ClientError) || error.code !== "not-found") throw error;
}

/** Whether the index has an entry under a term. */
const isAbout = (entry: Entry, term: string): boolean => lookupHashes(entry).includes(term);

/** Tiles that do not make the root, in the words of a reader. */
async function judged<T>(served: ServedTiles, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (!(cause instanceof WrongTile)) throw cause;
    throw new ClientError(
      "log-misbehaved",
      `The tiles at ${served.url} are not those of its checkpoint. ${cause.message}`,
      {
        cause,
      },
    );
  }
}
