/**
 * Follows any log that serves checkpoints and tiles as c2sp.org says, and mirrors it. It knows nothing of what the entries
 * mean. Each round: the newest checkpoint is signed by a log of the policy and by a quorum of its witnesses; its tree goes on
 * from the last one; every new entry is in it; and some mirrored entries are still served. The server chose all received
 * data. Only the folder and the policy are trusted.
 */
import { randomInt } from "node:crypto";
import { encodeBase64, toHex } from "../../../engine/verify/encoding.js";
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
  tilePath,
  verifyByPolicy,
} from "../../../engine/verify/index.js";
import { peakPositions } from "../../../engine/verify/tree/merkle.js";
import { Http } from "../../client/http.js";
import { ClientError } from "../../client/index.js";
import { type Bundle, FULL_TILE, HASH_BYTES, NotServed, readBundle, ServedTiles } from "../../client/log/served.js";
import { CLOCK_SKEW_MS, Misbehaviour, type Misconduct, OlderHead, type TiledEvidence } from "../alarm.js";
import { AuthenticTiles, WrongTile } from "./authentic.js";
import { type KeptCheckpoint, TiledMirror } from "./mirror.js";

/** Bundles that are fetched at the same time. */
const TOGETHER = 8;

export interface TiledMonitorOptions {
  /** Address before `/checkpoint`. */
  readonly url: string;
  readonly policy: Policy;
  /** Where the mirror is. */
  readonly mirror: string;
  readonly fetch: typeof fetch;
  /** Milliseconds for which nodes that are behind are asked again. */
  readonly patience?: number | undefined;
  /** Whether the log must serve all entries for ever, so that an old bundle that is gone is misbehaviour. */
  readonly isUnpruned?: boolean;
  /** Called with the path of each mirrored bundle that the log does not serve any more, unless that is misbehaviour. */
  readonly onMissing?: (path: string) => void;
  /** Told how far a round has come. */
  readonly onProgress?: (what: "entries" | "audit", done: number, total: number) => void;
}

/**
 * The latest time since which a quorum has cosigned, in seconds since 1970; null if none has, or none is needed. A time in the
 * future says nothing: until it came, it would look like a sign of life, and like newer than every other.
 */
function witnessedAt({ cosigned }: PolicyVerdict, policy: Policy): number | null {
  const names = new Set<string>();
  if (policy.quorum === null) return null;
  const latest = (Date.now() + CLOCK_SKEW_MS) / 1000;
  for (const { witness, time } of cosigned.filter(({ time }) => time <= latest).toSorted((a, b) => b.time - a.time))
    if (isQuorum(policy, names.add(witness.name))) return time;
  return null;
}

export class TiledMonitor {
  readonly #options: TiledMonitorOptions;
  readonly #served: ServedTiles;
  readonly #mirror: TiledMirror;
  /** The bundle that a log which must serve everything has denied: the next round asks for it again, not for one at random. */
  #denied: number | null = null;

  /** @throws TypeError for an invalid address */
  constructor(options: TiledMonitorOptions) {
    this.#options = options;
    this.#served = new ServedTiles(new Http(options.url, options.fetch, undefined, options.patience));
    this.#mirror = new TiledMirror(options.mirror);
  }

  /** The newest checkpoint that was followed, of this round or an earlier one. @throws CairnlogError `invalid-input` */
  newest(): KeptCheckpoint | null {
    return this.#mirror.checkpoint();
  }

  /**
   * The last sign of life, ISO 8601: the time since which a quorum of the witnesses has cosigned a checkpoint, by their clocks.
   * Where the policy needs no witness, when its tree was seen first: anybody can add lines to a checkpoint that is years old.
   */
  async lastLife({ note, keptAt }: KeptCheckpoint): Promise<string> {
    const verdict = await verifyByPolicy(note, this.#options.policy);
    const time = verdict && witnessedAt(verdict, this.#options.policy);
    // A clock that is a little ahead puts no alarm off.
    return time ? new Date(Math.min(time * 1000, Date.now())).toISOString() : keptAt;
  }

  /**
   * One round: everything that the newest checkpoint covers, verified and mirrored. Old entries are compared when the checkpoint
   * is kept: whatever that finds, the new ones hold.
   * @returns who signed the checkpoint
   * @throws Misbehaviour; ClientError if the log cannot be asked, or its checkpoint has no quorum yet, `OlderHead` if it is
   *   older than the last one; CairnlogError
   *   `invalid-input`, `storage-failed`
   */
  async round({ audit = false }: { readonly audit?: boolean } = {}): Promise<PolicyVerdict> {
    const known = this.newest();
    const note = await this.#served.checkpoint();
    const verdict = await this.#judge(note, known);
    const { treeSize, rootHash } = verdict.checkpoint;
    const evidence = { known: known?.note ?? null, shown: note };
    try {
      const tiles = await AuthenticTiles.open(treeSize, rootHash, {
        served: (level, index, width) => this.#served.tile(level, index, width),
        kept: (level, index) => this.#mirror.read({ level, index, width: FULL_TILE }),
      });
      if (known) await this.#compare(known, tiles, evidence);
      await this.#take(known?.treeSize ?? 0, tiles, evidence);
      await this.#keep(note, verdict, known);
      await this.#auditMirror(known?.treeSize ?? 0, tiles, audit, evidence);
    } catch (error) {
      if (!(error instanceof WrongTile)) throw error;
      throw this.#caught(
        "wrong-root",
        `The tiles do not make the root of the checkpoint of ${treeSize} entries. ${error.message}`,
        evidence,
      );
    }
    return verdict;
  }

  /** Keeps a checkpoint whose entries are mirrored. */
  async #keep(note: string, verdict: PolicyVerdict, known: KeptCheckpoint | null): Promise<void> {
    const { treeSize } = verdict.checkpoint;
    if (!known || treeSize > known.treeSize) this.#mirror.keep(note);
    else if (note !== known.note && !(await this.#isOlder(verdict, known))) this.#mirror.keep(note, known);
    if (known) this.#prune(known.treeSize, treeSize);
  }

  /** Whether a checkpoint was cosigned before the known one of the same tree: a cache may have kept it. */
  async #isOlder(verdict: PolicyVerdict, known: KeptCheckpoint): Promise<boolean> {
    const { policy } = this.#options;
    const before = await verifyByPolicy(known.note, policy);
    return ((before && witnessedAt(before, policy)) ?? 0) > (witnessedAt(verdict, policy) ?? 0);
  }

  /** Whether a checkpoint may be believed, and be newer than the known one. */
  async #judge(note: string, known: KeptCheckpoint | null): Promise<PolicyVerdict> {
    const { policy } = this.#options;
    // A gateway may answer in the log's place, which is no evidence against the log.
    const parsed = parseNote(note);
    if (!parsed || !parseCheckpointText(parsed.text))
      throw new ClientError("malformed-answer", `${this.#served.url}/checkpoint is not a checkpoint.`);
    const verdict = await verifyByPolicy(note, policy);
    if (!verdict)
      throw this.#caught(
        "bad-signature",
        "The checkpoint is not signed by a log of the policy, or a signature by one of its keys does not hold.",
        { known: known?.note ?? null, shown: note },
      );
    const { origin, treeSize, rootHash } = verdict.checkpoint;
    if (known && known.origin !== origin)
      throw new ClientError(
        "malformed-answer",
        `This directory has the log ${known.origin}, and the checkpoint is of ${origin}.`,
      );
    if (known && treeSize < known.treeSize) throw await this.#older(known, verdict.checkpoint, note);
    if (known?.treeSize === treeSize && known.rootHash !== rootHash)
      throw this.#caught("fork", `The log has signed two different roots of size ${treeSize}.`, {
        known: known.note,
        shown: note,
      });
    if (verdict.hasQuorum) return verdict;
    const names = verdict.cosigned.map(({ witness }) => witness.name).join(", ");
    throw new ClientError(
      "malformed-answer",
      `The checkpoint of ${treeSize} entries has no quorum of the witnesses; cosigned by: ${names || "none"}.`,
    );
  }

  /** A checkpoint that is smaller than the known one: older, or of another tree than the mirrored one. */
  async #older(
    known: KeptCheckpoint,
    shown: Checkpoint,
    note: string,
  ): Promise<Misbehaviour<TiledEvidence> | OlderHead> {
    const evidence = { known: known.note, shown: note };
    const { treeSize } = shown;
    const tiles = await this.#mirrored(known, evidence);
    const root = toHex(await tiles.fold(peakPositions(treeSize)));
    if (root !== shown.rootHash)
      return this.#caught(
        "fork",
        `The first ${treeSize} entries of the tree of ${known.treeSize} have another root than the log has signed for them.`,
        { ...evidence, prefixRoot: root, proof: await proofIn(tiles, treeSize) },
      );
    return new OlderHead(
      this.#caught(
        "shrunken",
        `The newest checkpoint has ${treeSize} entries, which is less than the ${known.treeSize} there must be.`,
        evidence,
      ),
    );
  }

  /** The tree of the known checkpoint, from the mirror; from the log if the disk has lost tiles. */
  async #mirrored({ treeSize, rootHash }: KeptCheckpoint, evidence: Pair): Promise<AuthenticTiles> {
    const kept = (level: number, index: number, width = FULL_TILE) => this.#mirror.read({ level, index, width });
    const served = (level: number, index: number, width: number) => this.#served.tile(level, index, width);
    const ours = { kept, served: async (...name: [number, number, number]) => kept(...name) ?? served(...name) };
    for (const source of [ours, { kept, served }])
      try {
        return await AuthenticTiles.open(treeSize, rootHash, source);
      } catch (error) {
        if (!(error instanceof WrongTile)) throw error;
      }
    throw this.#caught(
      "wrong-root",
      `The tiles do not make the root of the checkpoint of ${treeSize} entries.`,
      evidence,
    );
  }

  /** The tree of a checkpoint must begin with that of the known one. */
  async #compare(known: KeptCheckpoint, tiles: AuthenticTiles, evidence: Pair): Promise<void> {
    const prefix = toHex(await tiles.fold(peakPositions(known.treeSize)));
    if (prefix === known.rootHash) return;
    const proof = await proofIn(tiles, known.treeSize);
    throw this.#caught(
      "fork",
      `The first ${known.treeSize} entries of the tree of ${tiles.size} have another root than the log has signed for them.`,
      { ...evidence, prefixRoot: prefix, proof },
    );
  }

  /** Mirrors the entries from `from` on, and the tiles over them. */
  async #take(from: number, tiles: AuthenticTiles, evidence: Pair): Promise<void> {
    const { onProgress } = this.#options;
    const { size } = tiles;
    if (from === size) return;
    const end = Math.ceil(size / FULL_TILE);
    for (let first = Math.floor(from / FULL_TILE); first < end; first += TOGETHER) {
      const indexes = Array.from({ length: Math.min(TOGETHER, end - first) }, (_, i) => first + i);
      await Promise.all(indexes.map((index) => this.#takeBundle(index, tiles, evidence)));
      onProgress?.("entries", Math.min(size, (first + indexes.length) * FULL_TILE), size);
    }
    // Levels above that of the leaves: the tiles over what is new.
    for (let level = 1; tiles.size >= FULL_TILE ** level; level++) {
      const nodes = Math.floor(size / FULL_TILE ** level);
      for (let index = Math.floor(from / FULL_TILE ** (level + 1)); index * FULL_TILE < nodes; index++)
        this.#write(level, index, await tiles.tile(level, index));
    }
  }

  async #takeBundle(index: number, tiles: AuthenticTiles, evidence: Pair): Promise<void> {
    const hashes = await tiles.tile(0, index);
    const width = hashes.length / HASH_BYTES;
    const name = { level: "entries", index, width } as const;
    // A round that was stopped has left what it had.
    const kept = width === FULL_TILE ? this.#mirror.read(name) : undefined;
    if (!isIntact(kept, hashes)) {
      const served = await this.#served.bundle(index, width);
      const wrong = differing(served, hashes);
      if (wrong >= 0)
        throw this.#caught("bad-entry", `Entry ${index * FULL_TILE + wrong} is not the one in the tree.`, {
          ...evidence,
          entry: encodeBase64(served.entries[wrong]!),
        });
      this.#mirror.write(name, served.bytes);
    }
    this.#write(0, index, hashes);
  }

  #write(level: number, index: number, hashes: Uint8Array): void {
    this.#mirror.write({ level, index, width: hashes.length / HASH_BYTES }, hashes);
  }

  /** Removes the partial tiles and bundle of the last checkpoint, which now have more hashes. */
  #prune(from: number, size: number): void {
    for (let level = 0; from >= FULL_TILE ** level; level++) {
      const index = Math.floor(from / FULL_TILE ** (level + 1));
      const width = Math.floor(size / FULL_TILE ** level) - index * FULL_TILE;
      this.#mirror.prune(level, index, width < FULL_TILE ? width : 0);
      if (level === 0) this.#mirror.prune("entries", index, width < FULL_TILE ? width : 0);
    }
  }

  /** Whether bundles that were mirrored in earlier rounds are still served: all of them, or one at random. */
  async #auditMirror(to: number, tiles: AuthenticTiles, all: boolean, evidence: Pair): Promise<void> {
    const bundles = Math.floor(to / FULL_TILE);
    const chosen =
      all || !bundles ? Array.from({ length: bundles }, (_, i) => i) : [this.#denied ?? randomInt(bundles)];
    for (const [done, index] of chosen.entries()) {
      const hashes = await tiles.tile(0, index);
      const kept = this.#mirror.read({ level: "entries", index, width: FULL_TILE });
      const served = await this.#stillServed(index, hashes, kept, evidence);
      if (!served) continue;
      if (index === this.#denied) this.#denied = null;
      const wrong = differing(served, hashes);
      if (wrong >= 0)
        throw this.#caught("changed-entry", `Entry ${index * FULL_TILE + wrong} is not served as it was mirrored.`, {
          ...evidence,
          entry: encodeBase64(served.entries[wrong]!),
        });
      // The disk may have lost it.
      if (!kept || Buffer.compare(kept, served.bytes) !== 0)
        this.#mirror.write({ level: "entries", index, width: FULL_TILE }, served.bytes);
      if (all) this.#options.onProgress?.("audit", (done + 1) * FULL_TILE, bundles * FULL_TILE);
    }
  }

  /**
   * A bundle that was mirrored; undefined if the log does not have it any more, which it may, and the mirror has it.
   * @throws NotServed if neither has it
   */
  async #stillServed(
    index: number,
    hashes: Uint8Array,
    kept: Uint8Array | undefined,
    evidence: Pair,
  ): Promise<Bundle | undefined> {
    try {
      return await this.#served.bundle(index, FULL_TILE);
    } catch (error) {
      if (!(error instanceof NotServed) || !isIntact(kept, hashes)) throw error;
      const { isUnpruned, onMissing } = this.#options;
      if (isUnpruned) {
        this.#denied = index;
        throw this.#caught("missing-entry", `${error.message} Its entries were mirrored.`, evidence);
      }
      onMissing?.(tilePath({ level: "entries", index, width: FULL_TILE }));
      return undefined;
    }
  }

  #caught(kind: Misconduct, detail: string, parts: Partial<TiledEvidence>): Misbehaviour<TiledEvidence> {
    return new Misbehaviour<TiledEvidence>(kind, detail, {
      logs: this.#options.policy.logs.map(({ key }) => formatVkey(key)),
      known: null,
      shown: null,
      prefixRoot: null,
      proof: null,
      entry: null,
      ...parts,
    });
  }
}

/** The consistency proof from the tree of `size` entries to a larger one, in base64. */
async function proofIn(tiles: AuthenticTiles, size: number): Promise<string[]> {
  const proof: string[] = [];
  for (const part of consistencyParts(size, tiles.size)) proof.push(encodeBase64(await tiles.fold(part)));
  return proof;
}

/** The checkpoint that was believed until now, and the new one. */
type Pair = Pick<TiledEvidence, "known" | "shown">;

/** Number of the first entry whose hash is not the one in the tile; -1 if all are. */
const differing = ({ entries }: Bundle, hashes: Uint8Array): number =>
  entries.findIndex(
    (entry, i) => Buffer.compare(rfc6962.leafHash(entry), hashes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)) !== 0,
  );

/** Whether these are the bytes of the bundle under a tile. */
function isIntact(bytes: Uint8Array | undefined, hashes: Uint8Array): boolean {
  const bundle = bytes && readBundle(bytes, hashes.length / HASH_BYTES);
  return bundle?.bytes.length === bytes?.length && bundle !== undefined && differing(bundle, hashes) < 0;
}
