/**
 * A verified copy of a tiled log, wherever it is kept. A round: the newest checkpoint is signed by a log of the policy and by a
 * quorum of its witnesses; its tree goes on from the last one; every new entry is in it. The log chose all received data. Only
 * the policy, and the checkpoint of the copy, are trusted.
 */
import { encodeBase64, toHex } from "../../../engine/verify/bytes/encoding.js";
import {
  type Checkpoint,
  consistencyParts,
  formatVkey,
  isQuorum,
  type Policy,
  type PolicyVerdict,
  parseCheckpointText,
  parseNote,
  rfc6962,
  type TileName,
  verifyByPolicy,
} from "../../../engine/verify/index.js";
import { peakPositions } from "../../../engine/verify/tree/merkle.js";
import { ClientError } from "../../client/index.js";
import { AuthenticTiles, type Awaitable, WrongTile } from "../../client/log/authentic.js";
import { type Bundle, FULL_TILE, HASH_BYTES, readBundle, type ServedTiles } from "../../client/log/served.js";
import { GoesOn, type PublishedEntry, proofFileIn } from "../../client/static/end.js";
import { CLOCK_SKEW_MS, Misbehaviour, type Misconduct, OlderHead, type TiledEvidence } from "../alarm.js";

/** Bundles that are fetched at the same time. */
const TOGETHER = 8;

/** The newest checkpoint that was followed. */
export interface KnownCheckpoint extends Checkpoint {
  readonly note: string;
}

/** Where a copy is kept. */
export interface CopyStore<Known extends KnownCheckpoint = KnownCheckpoint> {
  /** What it is called in sentences. */
  readonly name: string;
  /** Null if there is none yet. */
  checkpoint(): Awaitable<Known | null>;
  /** Bytes of a tile or bundle; undefined if it is not there. */
  read(name: TileName): Awaitable<Uint8Array | undefined>;
  /** Like `read`, of what is not covered by the checkpoint yet: a round that was stopped has left what it had. */
  readLeft(name: TileName): Awaitable<Uint8Array | undefined>;
  write(name: TileName, bytes: Uint8Array): Awaitable<void>;
  /**
   * Keeps a checkpoint. Everything that it covers has been written.
   * @param known the one before, if it has the same tree
   */
  keep(note: string, verdict: PolicyVerdict, known?: Known): Awaitable<void>;
}

/** The copy has a log of another name. */
export class OtherLog extends ClientError {}

/** The checkpoint that was believed until now, and the new one. */
export type Pair = Pick<TiledEvidence, "known" | "shown">;

/** A round whose checkpoint was kept. */
export interface Followed<Known> {
  readonly verdict: PolicyVerdict;
  readonly known: Known | null;
  readonly tiles: AuthenticTiles;
  readonly evidence: Pair;
}

interface TiledCopyOptions<Known extends KnownCheckpoint> {
  readonly served: ServedTiles;
  readonly policy: Policy;
  readonly store: CopyStore<Known>;
  /** The entry that ended the log, if that is known: a larger checkpoint is misbehaviour. */
  readonly end?: () => PublishedEntry | null;
  /** Called with how far a round has come. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export class TiledCopy<Known extends KnownCheckpoint> {
  readonly #options: TiledCopyOptions<Known>;
  readonly #served: ServedTiles;
  readonly #policy: Policy;
  readonly #store: CopyStore<Known>;

  constructor(options: TiledCopyOptions<Known>) {
    this.#options = options;
    this.#served = options.served;
    this.#policy = options.policy;
    this.#store = options.store;
  }

  /**
   * One round: everything that the newest checkpoint covers, verified and written; the checkpoint last.
   * @param from number of the first entry that may be missing; by default that behind the known checkpoint
   * @param more what follows on it in the same round; both may throw `GoesOn`, which is misbehaviour of the log
   * @throws Misbehaviour; ClientError if the log cannot be asked, or its checkpoint has no quorum yet, `OtherLog`, `OlderHead` if
   *   it is older than the last one; errors of the store
   */
  async follow(
    from: (known: Known | null, tiles: AuthenticTiles) => Awaitable<number> = (known) => known?.treeSize ?? 0,
    more: (followed: Followed<Known>) => Promise<void> = async () => {},
  ): Promise<Followed<Known>> {
    const known = await this.#store.checkpoint();
    const note = await this.#served.checkpoint();
    const verdict = await this.#judge(note, known);
    const { treeSize, rootHash } = verdict.checkpoint;
    const evidence = { known: known?.note ?? null, shown: note };
    let tiles: AuthenticTiles | undefined;
    try {
      tiles = await AuthenticTiles.open(treeSize, rootHash, {
        served: (level, index, width) => this.#served.tile(level, index, width),
        kept: (level, index) => this.#store.readLeft({ level, index, width: FULL_TILE }),
      });
      if (known) await this.#compare(known, tiles, evidence);
      await this.#take(await from(known, tiles), tiles, evidence);
      await this.#keep(note, verdict, known);
      const followed = { verdict, known, tiles, evidence };
      await more(followed);
      return followed;
    } catch (error) {
      if (error instanceof GoesOn && tiles) {
        throw await this.#wentOn(error, evidence, proofFileIn(tiles, note, error.frozen));
      }
      if (!(error instanceof WrongTile)) throw error;
      throw this.caught(
        "wrong-root",
        `The tiles do not make the root of the checkpoint of ${treeSize} entries. ${error.message}`,
        evidence,
      );
    }
  }

  /** Keeps a checkpoint whose entries are written. */
  async #keep(note: string, verdict: PolicyVerdict, known: Known | null): Promise<void> {
    const { treeSize } = verdict.checkpoint;
    if (!known || treeSize > known.treeSize) await this.#store.keep(note, verdict);
    else if (note !== known.note && !(await this.#isOlder(verdict, known)))
      await this.#store.keep(note, verdict, known);
  }

  /** Whether a checkpoint was cosigned before the known one of the same tree: a cache may have kept it. */
  async #isOlder(verdict: PolicyVerdict, known: Known): Promise<boolean> {
    const policy = this.#policy;
    const before = await verifyByPolicy(known.note, policy);
    return ((before && witnessedAt(before, policy)) ?? 0) > (witnessedAt(verdict, policy) ?? 0);
  }

  /** Whether a checkpoint may be believed, and be newer than the known one. */
  async #judge(note: string, known: Known | null): Promise<PolicyVerdict> {
    const policy = this.#policy;
    // A gateway may answer in the log's place, which is no evidence against the log.
    const parsed = parseNote(note);
    if (!parsed || !parseCheckpointText(parsed.text))
      throw new ClientError("malformed-answer", `${this.#served.url}/checkpoint is not a checkpoint.`);
    const verdict = await verifyByPolicy(note, policy);
    if (!verdict)
      throw this.caught(
        "bad-signature",
        "The checkpoint is not signed by a log of the policy, or a signature by one of its keys does not hold.",
        { known: known?.note ?? null, shown: note },
      );
    const { origin, treeSize, rootHash } = verdict.checkpoint;
    if (known && known.origin !== origin)
      throw new OtherLog(
        "malformed-answer",
        `${this.#store.name} has the log ${known.origin}, and the checkpoint is of ${origin}.`,
      );
    if (known && treeSize < known.treeSize) throw await this.#older(known, verdict.checkpoint, note);
    if (known?.treeSize === treeSize && known.rootHash !== rootHash)
      throw this.caught("fork", `The log has signed two different roots of size ${treeSize}.`, {
        known: known.note,
        shown: note,
      });
    const end = this.#options.end?.();
    if (end && treeSize > end.leafIndex + 1) {
      const evidence = { known: known?.note ?? null, shown: note };
      const proof = known && this.#inCopy(known, evidence, (tiles) => proofFileIn(tiles, known.note, end));
      throw await this.#wentOn(new GoesOn(end, treeSize), evidence, proof);
    }
    if (verdict.hasQuorum) return verdict;
    const names = verdict.cosigned.map(({ witness }) => witness.name).join(", ");
    throw new ClientError(
      "malformed-answer",
      `The checkpoint of ${treeSize} entries has no quorum of the witnesses; cosigned by: ${names || "none"}.`,
    );
  }

  /**
   * The alarm for a log that goes on behind its end, which was received already.
   * @param proof of the end, for others: what the log denies now keeps no alarm away
   */
  async #wentOn({ message }: GoesOn, evidence: Pair, proof: Promise<string> | null) {
    const end = await proof?.catch(() => undefined);
    return this.caught("after-freeze", message, { ...evidence, ...(end !== undefined && { end }) });
  }

  /** A checkpoint that is smaller than the known one: older, or of another tree than the copied one. */
  async #older(known: Known, shown: Checkpoint, note: string): Promise<Misbehaviour<TiledEvidence> | OlderHead> {
    const evidence = { known: known.note, shown: note };
    const { treeSize } = shown;
    const fork = await this.#inCopy(known, evidence, async (tiles) => {
      const prefixRoot = toHex(await tiles.fold(peakPositions(treeSize)));
      return prefixRoot === shown.rootHash ? null : { prefixRoot, proof: await proofIn(tiles, treeSize) };
    });
    if (fork)
      return this.caught(
        "fork",
        `The first ${treeSize} entries of the tree of ${known.treeSize} have another root than the log has signed for them.`,
        { ...evidence, ...fork },
      );
    return new OlderHead(
      this.caught(
        "shrunken",
        `The newest checkpoint has ${treeSize} entries, which is less than the ${known.treeSize} there must be.`,
        evidence,
      ),
    );
  }

  /** What `work` makes of the tree of the known checkpoint: from the copy, and from the log what that has lost or has damaged. */
  async #inCopy<T>(
    { treeSize, rootHash }: Known,
    evidence: Pair,
    work: (tiles: AuthenticTiles) => Promise<T>,
  ): Promise<T> {
    const kept = (level: number, index: number, width = FULL_TILE) => this.#store.read({ level, index, width });
    const served = (level: number, index: number, width: number) => this.#served.tile(level, index, width);
    const edge = async (level: number, index: number, width: number) =>
      // A full tile is asked for here when the kept one is not right.
      (width < FULL_TILE ? await kept(level, index, width) : undefined) ?? served(level, index, width);
    for (const source of [
      { kept, served: edge },
      { kept, served },
    ])
      try {
        return await work(await AuthenticTiles.open(treeSize, rootHash, source));
      } catch (error) {
        if (!(error instanceof WrongTile)) throw error;
      }
    throw this.caught(
      "wrong-root",
      `The tiles do not make the root of the checkpoint of ${treeSize} entries.`,
      evidence,
    );
  }

  /** The tree of a checkpoint must begin with that of the known one. */
  async #compare(known: Known, tiles: AuthenticTiles, evidence: Pair): Promise<void> {
    const prefix = toHex(await tiles.fold(peakPositions(known.treeSize)));
    if (prefix === known.rootHash) return;
    const proof = await proofIn(tiles, known.treeSize);
    throw this.caught(
      "fork",
      `The first ${known.treeSize} entries of the tree of ${tiles.size} have another root than the log has signed for them.`,
      { ...evidence, prefixRoot: prefix, proof },
    );
  }

  /** Writes the entries from `from` on, and the tiles over them. */
  async #take(from: number, tiles: AuthenticTiles, evidence: Pair): Promise<void> {
    const { onProgress } = this.#options;
    const { size } = tiles;
    if (from === size) return;
    const end = Math.ceil(size / FULL_TILE);
    for (let first = Math.floor(from / FULL_TILE); first < end; first += TOGETHER) {
      const indexes = Array.from({ length: Math.min(TOGETHER, end - first) }, (_, i) => first + i);
      await Promise.all(indexes.map((index) => this.#takeBundle(index, tiles, evidence)));
      onProgress?.(Math.min(size, (first + indexes.length) * FULL_TILE), size);
    }
    // Levels above that of the leaves: the tiles over what is new.
    for (let level = 1; tiles.size >= FULL_TILE ** level; level++) {
      const nodes = Math.floor(size / FULL_TILE ** level);
      for (let index = Math.floor(from / FULL_TILE ** (level + 1)); index * FULL_TILE < nodes; index++)
        await this.#write(level, index, await tiles.tile(level, index));
    }
  }

  async #takeBundle(index: number, tiles: AuthenticTiles, evidence: Pair): Promise<void> {
    const hashes = await tiles.tile(0, index);
    const width = hashes.length / HASH_BYTES;
    const name = { level: "entries", index, width } as const;
    // A round that was stopped has left what it had.
    const kept = width === FULL_TILE ? await this.#store.readLeft(name) : undefined;
    if (!isIntact(kept, hashes)) {
      const served = await this.#served.bundle(index, width);
      const wrong = firstDiffering(served, hashes);
      if (wrong >= 0)
        throw this.caught("bad-entry", `Entry ${index * FULL_TILE + wrong} is not the one in the tree.`, {
          ...evidence,
          entry: encodeBase64(served.entries[wrong]!),
        });
      await this.#store.write(name, served.bytes);
    }
    await this.#write(0, index, hashes);
  }

  async #write(level: number, index: number, hashes: Uint8Array): Promise<void> {
    await this.#store.write({ level, index, width: hashes.length / HASH_BYTES }, hashes);
  }

  /** The error for a misbehaviour of the log, with its evidence. */
  caught(kind: Misconduct, detail: string, parts: Partial<TiledEvidence>): Misbehaviour<TiledEvidence> {
    return new Misbehaviour<TiledEvidence>(kind, detail, {
      logs: this.#policy.logs.map(({ key }) => formatVkey(key)),
      known: null,
      shown: null,
      prefixRoot: null,
      proof: null,
      entry: null,
      ...parts,
    });
  }
}

/**
 * The latest time since which a quorum has cosigned, in seconds since 1970; null if none has, or none is needed. A time in the
 * future says nothing: until it came, it would look like a sign of life, and like newer than every other.
 */
export function witnessedAt({ cosigned }: PolicyVerdict, policy: Policy): number | null {
  const names = new Set<string>();
  if (policy.quorum === null) return null;
  const latest = (Date.now() + CLOCK_SKEW_MS) / 1000;
  for (const { witness, time } of cosigned.filter(({ time }) => time <= latest).toSorted((a, b) => b.time - a.time))
    if (isQuorum(policy, names.add(witness.name))) return time;
  return null;
}

/** The consistency proof from the tree of `size` entries to a larger one, in base64. */
async function proofIn(tiles: AuthenticTiles, size: number): Promise<string[]> {
  const proof: string[] = [];
  for (const part of consistencyParts(size, tiles.size)) proof.push(encodeBase64(await tiles.fold(part)));
  return proof;
}

/** Number of the first entry whose hash is not the one in the tile; -1 if all are. */
export const firstDiffering = ({ entries }: Bundle, hashes: Uint8Array): number =>
  entries.findIndex(
    (entry, i) => Buffer.compare(rfc6962.leafHash(entry), hashes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)) !== 0,
  );

/** Whether these are the bytes of the bundle under a tile. */
export function isIntact(bytes: Uint8Array | undefined, hashes: Uint8Array): boolean {
  const bundle = bytes && readBundle(bytes, hashes.length / HASH_BYTES);
  return bundle?.bytes.length === bytes?.length && bundle !== undefined && firstDiffering(bundle, hashes) < 0;
}
