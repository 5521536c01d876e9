/**
 * Reads stored entries and heads by leaf index. Neighbours are often read together, so the reader caches the last few
 * batches of which more than one item was read in a row. From all other batches it copies only the requested part.
 */

import { CairnlogError } from "../../base/error.js";
import { Lately, Recent } from "../../base/recent.js";
import type { BatchExtent } from "../../store/lmdb/batch-extents.js";
import type { Batch, StoredHead } from "../../store/schema/batch.js";
import type { WithheldRow } from "../../store/schema/rows.js";
import { HASH } from "../../store/schema/schema.js";
import type { StoreReader } from "../../store/store.js";
import { type WithheldEntry, withoutName } from "../../verify/events/withheld.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { formatTimestamp } from "../state/clock.js";
import { spellWithheld } from "../state/entry.js";

/** Number of cached batches; a batch is immutable, so a cached one is stale only if its file was replaced. */
const KEPT_BATCHES = 16;
/** Number of entries that are cached, as they are served, when they are asked for again; very long ones are not: 1 MiB. */
const KEPT_ENTRIES = 256;
const MAX_KEPT = 4096;

/** Tells how an entry is withheld. */
export interface Withholdings {
  /** What is withheld of the entry at a leaf index; undefined if nothing is. */
  row(leafIndex: number): WithheldRow | undefined;
}

/** Entry hashes of neighbouring leaves, 32 bytes each. */
export interface Digests {
  /** Leaf index of the first. */
  readonly first: number;
  readonly bytes: Buffer;
}

export class EntryReader {
  readonly #store: Pick<StoreReader, "batchAt" | "batchView" | "batchPlace">;
  /** The newest first. */
  #kept: Batch[] = [];
  readonly #served = new Recent<number, Buffer>(KEPT_ENTRIES);
  readonly #asked = new Lately();
  readonly #withheld: Withholdings | null;
  /** The first leaf index of the last batch that was read and not cached. */
  #glanced = -1;

  /** @param withheld the entries to be read without their payload; without it, all are read as they are stored */
  constructor(store: Pick<StoreReader, "batchAt" | "batchView" | "batchPlace">, withheld: Withholdings | null = null) {
    this.#store = store;
    this.#withheld = withheld;
  }

  /** Forgets what is cached, when it may be of another log. */
  clear(): void {
    this.#kept = [];
    this.#served.clear();
  }

  /**
   * Calls `read` with the batch that contains `index`. The result must not refer to the batch's bytes unless it copied
   * them.
   */
  #read<T>(index: number, read: (batch: Batch, i: number) => T): T | undefined {
    const kept = this.#keptWith(index);
    if (kept) return read(kept, index - kept.firstIndex);
    const glance = this.#store.batchView(index);
    if (!glance) return undefined;
    if (glance.firstIndex !== this.#glanced) {
      this.#glanced = glance.firstIndex;
      return read(glance, index - glance.firstIndex);
    }
    const batch = this.#store.batchAt(index)!;
    this.#kept = [batch, ...this.#kept.slice(0, KEPT_BATCHES - 1)];
    return read(batch, index - batch.firstIndex);
  }

  #keptWith(index: number): Batch | undefined {
    for (const batch of this.#kept)
      if (index >= batch.firstIndex && index < batch.firstIndex + batch.count) return batch;
    return undefined;
  }

  /** Where a batch lies of which only one item is wanted; neighbours are read from a copy of all of it. */
  #glance(index: number): BatchExtent | undefined {
    if (this.#keptWith(index)) return undefined;
    const place = this.#store.batchPlace(index);
    if (!place || place.firstIndex === this.#glanced) return undefined;
    this.#glanced = place.firstIndex;
    return place;
  }

  /** The entry as it is served. Do not write to it: later callers may get the same bytes. */
  json(index: number): Buffer | undefined {
    const row = this.#withheld?.row(index);
    if (row) return Buffer.from(spellWithheld(withheldAs(this.#parsed(index)!, row)), "utf8");
    const served = this.#served.get(index);
    if (served) return served;
    const place = this.#glance(index);
    const json = place?.entry(index - place.firstIndex) ?? this.#read(index, (batch, i) => Buffer.from(batch.entry(i)));
    if (json && json.length <= MAX_KEPT && this.#asked.again(index)) this.#served.set(index, json);
    return json;
  }

  /** @throws CairnlogError `corrupt-log` if its stored bytes are not JSON */
  entry(index: number): Entry | undefined {
    return this.#shown(index, this.#parsed(index));
  }

  #shown(index: number, entry: Entry | undefined): Entry | undefined {
    const row = this.#withheld?.row(index);
    return entry && row ? withheldAs(entry, row) : entry;
  }

  #parsed(index: number): Entry | undefined {
    const place = this.#glance(index);
    const text = place?.entry(index - place.firstIndex)?.toString() ?? this.#read(index, (batch, i) => batch.text(i));
    return text === undefined ? undefined : parsed(text, index);
  }

  /**
   * Like `entry`, for one of many that lie far apart: nothing is cached, and no batch is copied for a second entry of it, as
   * takes 0.1 ms for a batch of 512.
   * @throws CairnlogError as `entry` does
   */
  scattered(index: number): Entry | undefined {
    const place = this.#keptWith(index) ? undefined : this.#store.batchPlace(index);
    const text = place?.entry(index - place.firstIndex)?.toString() ?? this.#read(index, (batch, i) => batch.text(i));
    return text === undefined ? undefined : this.#shown(index, parsed(text, index));
  }

  /** Entry hash, hex. */
  digest(index: number): string | undefined {
    return this.digestsAround(index, 1)?.bytes.toString("hex");
  }

  /**
   * The entry hash at `index`, and those of its neighbours from the last multiple of `width` up to the next one, as far as
   * they are in the same batch: they come with one read of the file.
   */
  digestsAround(index: number, width: number): Digests | undefined {
    const low = index - (index % width);
    const within = ({ firstIndex, count }: Pick<Batch, "firstIndex" | "count">) =>
      [Math.max(low, firstIndex), Math.min(low + width, firstIndex + count)] as const;
    const place = this.#glance(index);
    if (place) {
      const [first, end] = within(place);
      const bytes = place.digests(first - place.firstIndex, end - place.firstIndex);
      if (bytes) return { first, bytes };
    }
    return this.#read(index, (batch) => {
      const [first, end] = within(batch);
      const [from, to] = [HASH * (first - batch.firstIndex), HASH * (end - batch.firstIndex)];
      return { first, bytes: Buffer.from(batch.digests.subarray(from, to)) };
    });
  }

  /** Entry hashes of the leaf indexes [from, to), 32 bytes each, in a copy; undefined if one of them is not there. */
  digests(from: number, to: number): Buffer | undefined {
    const digests = Buffer.allocUnsafeSlow((to - from) * HASH);
    for (let index = from; index < to; ) {
      const batch = this.#keptWith(index) ?? this.#store.batchView(index);
      if (!batch) return undefined;
      const first = index - batch.firstIndex;
      const count = Math.min(to - index, batch.count - first);
      batch.digests.copy(digests, (index - from) * HASH, first * HASH, (first + count) * HASH);
      index += count;
    }
    return digests;
  }

  /** The stored head of a tree size; undefined if there is none. @throws CairnlogError `corrupt-log` */
  head(treeSize: number): TreeHead | undefined {
    const index = treeSize - 1;
    const place = this.#keptWith(index) ? undefined : this.#store.batchPlace(index);
    const stored = place?.head(index - place.firstIndex);
    return stored ? storedHeadOf(stored, treeSize) : this.#read(index, (batch, i) => headOf(batch, i, treeSize));
  }
}

const withheldAs = (entry: Entry, { withheld_by, shown_hash }: WithheldRow): WithheldEntry => ({
  ...entry,
  payload: shown_hash === undefined ? null : withoutName(entry.payload),
  withheld_by,
});

function parsed(json: string, index: number): Entry {
  try {
    return JSON.parse(json) as Entry;
  } catch (cause) {
    throw damagedEntry(index, cause);
  }
}

/** The error for an entry whose stored bytes are not what an append writes. */
export const damagedEntry = (index: number, cause: unknown): CairnlogError =>
  new CairnlogError(
    "corrupt-log",
    `The entry at leaf ${index} is damaged. Stop the service; cairnlog fsck says what can be read, and cairnlog restore restores the newest backup.`,
    { cause },
  );

/** The head of a batch's entry number `i`; undefined if it has none. */
export const headOf = (batch: Batch, i: number, treeSize: number): TreeHead | undefined =>
  storedHeadOf({ info: batch.headInfo, record: batch.head(i) }, treeSize);

function storedHeadOf({ info, record }: StoredHead, treeSize: number): TreeHead | undefined {
  if (!info || !record) return undefined;
  if (!Number.isSafeInteger(record.timestamp))
    throw new CairnlogError("corrupt-log", `The head of size ${treeSize} is damaged: its timestamp is not valid.`);
  return {
    tree_size: treeSize,
    root_hash: Buffer.from(record.root).toString("hex"),
    signature: Buffer.from(record.signature).toString("base64"),
    timestamp: formatTimestamp(record.timestamp),
    key_id: `sha256:${info.keyId.toString("hex")}`,
    tree_version: info.treeVersion,
  };
}
