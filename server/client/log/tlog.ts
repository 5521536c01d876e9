/**
 * Reads the log as a C2SP transparency log (`docs/tiles.md`): checkpoints, tiles and entry bundles of its RFC 6962 tree, and
 * proofs that are computed from them here.
 */
import { fromHex } from "../../../engine/verify/bytes/encoding.js";
import { isCut } from "../../../engine/verify/events/withheld.js";
import {
  CairnlogError,
  type Checkpoint,
  canonicalJson,
  formatTlogProof,
  inclusionParts,
  type NoteKey,
  type ProofPart,
  parseCheckpointText,
  parseVkey,
  rfc6962,
  verifyNote,
} from "../../../engine/verify/index.js";
import { ClientError } from "../base/error.js";
import type { Http } from "../base/http.js";
import type { LogReader } from "./log.js";
import { FULL_TILE, HASH_BYTES, ServedTiles } from "./served.js";

const TILE_LEVELS = 8;

/** A checkpoint whose signature was verified. */
export interface VerifiedCheckpoint {
  /** The note as it was served. */
  readonly note: string;
  readonly checkpoint: Checkpoint;
}

/** An entry's place in the tree of a checkpoint. */
export interface TlogInclusion extends VerifiedCheckpoint {
  readonly leafIndex: number;
  /** From the leaf's sibling to the child of the root, 32 bytes each. */
  readonly proof: readonly Uint8Array[];
}

export class TlogReader {
  readonly #served: ServedTiles;
  readonly #log: Pick<LogReader, "entry">;

  constructor(http: Http, log: Pick<LogReader, "entry">) {
    this.#served = new ServedTiles(http, "/tlog");
    this.#log = log;
  }

  /**
   * The key that the service shows for its checkpoints (vkey, c2sp.org/signed-note). Whoever trusts it trusts the service:
   * pin it, or get it from somebody else.
   * @throws ClientError
   */
  async vkey(): Promise<string> {
    return (await this.#served.text("/vkey")).trimEnd();
  }

  /**
   * The newest checkpoint, its signature verified.
   * @param vkey the log's verifier key; by default the one that the service shows
   * @throws ClientError `log-misbehaved` for a checkpoint that is not signed by the key; CairnlogError `invalid-key`
   */
  async checkpoint(vkey?: string): Promise<VerifiedCheckpoint> {
    const key = this.#key(vkey ?? (await this.vkey()), vkey !== undefined);
    const note = await this.#served.checkpoint();
    const verified = await verifyNote(note, [key]);
    const checkpoint = verified && parseCheckpointText(verified.text);
    if (checkpoint?.origin !== key.name)
      throw new ClientError("log-misbehaved", `The checkpoint is not one of ${key.name}, signed by its key.`);
    return { note, checkpoint };
  }

  /** @param isOwn whether the caller gave it */
  #key(vkey: string, isOwn: boolean): NoteKey {
    try {
      return parseVkey(vkey);
    } catch (error) {
      if (isOwn || !(error instanceof CairnlogError)) throw error;
      throw new ClientError("malformed-answer", `${this.#served.url} shows a verifier key that is none.`, {
        cause: error,
      });
    }
  }

  /**
   * The first `width` hashes of a tile, 32 bytes each. Where the log does not serve as few, they are taken from the full tile.
   * Nothing of a tile is verified: compare what follows from it with the root of a checkpoint.
   * @throws ClientError with a status from 400 on when the log has not as many; CairnlogError `invalid-input`
   */
  tile(level: number, index: number, width: number = FULL_TILE): Promise<Uint8Array> {
    return this.#served.tile(level, index, width);
  }

  /**
   * The first `width` entries of a bundle: their `entry_hash`es. Where the log does not serve as few, they are taken from the full
   * bundle. Nothing of it is verified: hash each as a leaf (`rfc6962.leafHash`) and compare it with its tile of level 0.
   * @throws ClientError with a status from 400 on when the log has not as many; CairnlogError `invalid-input`
   */
  async bundle(index: number, width: number = FULL_TILE): Promise<readonly string[]> {
    const { entries } = await this.#served.bundle(index, width);
    return entries.map((bytes) => {
      const leaf = new TextDecoder().decode(bytes);
      if (/^[0-9a-f]{64}$/.test(leaf)) return leaf;
      throw this.#served.malformed({ level: "entries", index, width });
    });
  }

  /**
   * Proof that an entry is in the tree of the newest checkpoint, computed from tiles and verified here.
   * @param entryHash of the entry, 64 lower-case hexadecimal characters
   * @throws ClientError `not-found` while no checkpoint covers it; `log-misbehaved` for tiles that do not make the root, or
   *   another entry in its place; CairnlogError as `checkpoint` does
   */
  async inclusion(leafIndex: number, entryHash: string, vkey?: string): Promise<TlogInclusion> {
    const { note, checkpoint } = await this.checkpoint(vkey);
    const { treeSize, rootHash } = checkpoint;
    if (leafIndex >= treeSize)
      throw new ClientError(
        "not-found",
        `The newest checkpoint covers ${treeSize} entries, and not yet entry ${leafIndex + 1}.`,
      );
    const tiles = new Map<string, Promise<Uint8Array>>();
    const fold = async (positions: ProofPart) =>
      rfc6962.foldSubtrees(
        await Promise.all(positions.map(({ level, index }) => this.#node(level, index, treeSize, tiles))),
      );
    const proof = await Promise.all(inclusionParts(leafIndex, treeSize).map(fold));
    const claim = {
      leafHash: rfc6962.leafHash(new TextEncoder().encode(entryHash)),
      leafIndex,
      treeSize,
      proof,
      rootHash: fromHex(rootHash),
    };
    if (!rfc6962.verifyInclusion(claim))
      throw new ClientError(
        "log-misbehaved",
        `Entry ${leafIndex + 1} is not in the tree of the checkpoint of size ${treeSize}.`,
      );
    return { note, checkpoint, leafIndex, proof };
  }

  /**
   * A proof file (c2sp.org/tlog-proof) for the entry with this id, which tools of other logs verify offline: the entry's place
   * in the tree of the newest checkpoint, and the checkpoint with all its signatures. All of it is verified here first. An entry
   * without its payload has the proof file of the one that withholds it in `withholding`.
   * @param options `vkey` as for `checkpoint`; `bare` leaves out the entry itself, which is the file's extra data
   * @throws ClientError `not-found` without such an entry, and while no checkpoint covers it; as `inclusion` does
   */
  async proofFile(
    id: number,
    { vkey, bare = false }: { readonly vkey?: string | undefined; readonly bare?: boolean } = {},
  ): Promise<TlogInclusion & { readonly text: string }> {
    const { entry, proof } = await this.#log.entry(id);
    const found = await this.inclusion(proof.leaf_index, entry.entry_hash, vkey);
    // A timestamp proof is no part of the entry: no hash covers it, and it changes.
    const { ots_proof: _, ...content } = entry;
    // No hash covers withheld_by: of an entry that is whole, it may say anything.
    const withholding = isCut(entry) && !bare ? (await this.proofFile(entry.withheld_by!, { vkey })).text : undefined;
    const text = formatTlogProof({
      index: found.leafIndex,
      extra: bare ? null : new TextEncoder().encode(canonicalJson({ ...content, withholding })),
      hashes: found.proof,
      checkpoint: found.note,
    });
    return { ...found, text };
  }

  /** A complete node of the tree of `size` leaves, from the tile that it is in or over. */
  async #node(
    level: number,
    index: number,
    size: number,
    tiles: Map<string, Promise<Uint8Array>>,
  ): Promise<Uint8Array> {
    const tileLevel = Math.floor(level / TILE_LEVELS);
    const span = 2 ** (level % TILE_LEVELS);
    const tile = Math.floor((index * span) / FULL_TILE);
    const width = Math.min(FULL_TILE, Math.floor(size / FULL_TILE ** tileLevel) - tile * FULL_TILE);
    const name = `${tileLevel}/${tile}`;
    const asked = tiles.get(name) ?? this.tile(tileLevel, tile, width);
    tiles.set(name, asked);
    const hashes = await asked;
    const first = (index * span) % FULL_TILE;
    return rfc6962.rootOf(
      Array.from({ length: span }, (_, i) => hashes.subarray((first + i) * HASH_BYTES, (first + i + 1) * HASH_BYTES)),
    );
  }
}
