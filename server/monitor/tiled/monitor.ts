/**
 * Follows any log that serves checkpoints and tiles as c2sp.org says, and mirrors it. It knows nothing of what the entries
 * mean. Each round follows the log into its copy (`copy.ts`), and sees whether some mirrored entries are still served. The
 * server chose all received data. Only the folder and the policy are trusted.
 */

import { randomInt } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { CairnlogError } from "../../../engine/base/error.js";
import { encodeBase64 } from "../../../engine/verify/bytes/encoding.js";
import {
  type Entry,
  type Policy,
  type PolicyVerdict,
  parseCheckpointText,
  parseNote,
  type TileName,
  tilePath,
  verifyByPolicy,
} from "../../../engine/verify/index.js";
import { Http } from "../../client/base/http.js";
import type { AuthenticTiles } from "../../client/log/authentic.js";
import { type Bundle, FULL_TILE, NotServed, ServedTiles } from "../../client/log/served.js";
import { logEndOf, type PublishedEntry } from "../../client/static/end.js";
import { OPERATOR_KEY } from "../../client/static/layout.js";
import { StaticLog } from "../../client/static/log.js";
import { keepFile } from "../folder.js";
import {
  type CopyStore,
  type Followed,
  firstDiffering,
  isIntact,
  type KnownCheckpoint,
  type Pair,
  TiledCopy,
  witnessedAt,
} from "./copy.js";

// The verified copy of a tiled log: a directory with the paths of tlog-tiles, which any web server can serve. The
// checkpoint is written last. What it covers is there, and was compared with its tree.
//
// If we crash here: bundles and tiles beyond the checkpoint are taken again by the next round if they fit its tree.

/** Names in a folder of tiles, without the partial ones: three digits. */
const IN_FOLDER = 1000;

interface KeptCheckpoint extends KnownCheckpoint {
  /** When its tree was seen first, ISO 8601. */
  readonly keptAt: string;
}

class TiledMirror implements CopyStore<KeptCheckpoint> {
  readonly name = "This directory";
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** @throws CairnlogError `corrupt-log` if the file is damaged */
  checkpoint(): KeptCheckpoint | null {
    const path = join(this.path, "checkpoint");
    const note = this.#read("checkpoint")?.toString("utf8");
    if (note === undefined) return null;
    const checkpoint = parseCheckpointText(parseNote(note)?.text ?? "");
    if (checkpoint) return { ...checkpoint, note, keptAt: statSync(path).mtime.toISOString() };
    throw new CairnlogError(
      "corrupt-log",
      `${path} is damaged. Begin anew in another directory, and keep this one: what it holds may be evidence.`,
    );
  }

  /** Bytes of a tile or bundle; undefined if it is not there. */
  read(name: TileName): Buffer | undefined {
    return this.#read(tilePath(name));
  }

  readLeft(name: TileName): Buffer | undefined {
    return this.read(name);
  }

  write(name: TileName, bytes: Uint8Array): void {
    keepFile(join(this.path, tilePath(name)), bytes);
  }

  /**
   * Writes the checkpoint. Everything that it covers has been written.
   * @param known the one before, if it has the same tree
   */
  keep(note: string, _verdict: PolicyVerdict, known?: KeptCheckpoint): void {
    keepFile(join(this.path, "checkpoint"), note, known && new Date(known.keptAt));
  }

  /** Numbers of the tiles or bundles from `first` to `last` that have partial forms. */
  *partial(level: TileName["level"], first: number, last: number): Iterable<number> {
    for (let index = first - (first % IN_FOLDER); index <= last; index += IN_FOLDER)
      for (const name of list(dirname(join(this.path, tilePath({ level, index, width: FULL_TILE }))))) {
        const number = index + Number(name.slice(0, -".p".length));
        if (name.endsWith(".p") && number >= first && number <= last) yield number;
      }
  }

  /** Removes all partial forms of a tile or bundle but one width. */
  prune(level: TileName["level"], index: number, but: number): void {
    const folder = dirname(join(this.path, tilePath({ level, index, width: 1 })));
    for (const width of list(folder)) if (width !== String(but)) rmSync(join(folder, width));
    if (!but) rmSync(folder, { recursive: true, force: true });
  }

  #read(name: string): Buffer | undefined {
    try {
      return readFileSync(join(this.path, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

interface TiledMonitorOptions {
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
  /** Keeps the entry that ended the log. A log shows it only where its entries are published. */
  readonly known?: { end: PublishedEntry | null };
  /** Told of the entry that froze the log, at least once. */
  readonly onFrozen?: ((entry: Entry) => Promise<void>) | undefined;
  /** Told how far a round has come. */
  readonly onProgress?: (what: "entries" | "audit", done: number, total: number) => void;
}

export class TiledMonitor {
  readonly #options: TiledMonitorOptions;
  readonly #served: ServedTiles;
  readonly #mirror: TiledMirror;
  readonly #copy: TiledCopy<KeptCheckpoint>;
  /** The bundle that a log which must serve everything has denied: the next round asks for it again, not for one at random. */
  #denied: number | null = null;
  readonly #known: { end: PublishedEntry | null };
  /** Size of the tree whose newest entry was seen, where entries are published. */
  #seen = 0;
  /** Whether they are. Those that are not may be later. */
  #hasEntries = false;

  /** @throws TypeError for an invalid address */
  constructor(options: TiledMonitorOptions) {
    this.#options = options;
    this.#served = new ServedTiles(new Http(options.url, options.fetch, undefined, options.patience));
    this.#mirror = new TiledMirror(options.mirror);
    this.#known = options.known ?? { end: null };
    const { policy, onProgress } = options;
    this.#copy = new TiledCopy({
      served: this.#served,
      policy,
      store: this.#mirror,
      end: () => this.#known.end,
      onProgress: onProgress && ((done, total) => onProgress("entries", done, total)),
    });
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
    const { verdict } = await this.#copy.follow(undefined, async (followed) => {
      const { known, tiles, evidence } = followed;
      this.#prune(known?.treeSize ?? 0, tiles.size);
      await this.#learnEnd(followed);
      await this.#auditMirror(known?.treeSize ?? 0, tiles, audit, evidence);
    });
    return verdict;
  }

  /** Where a cairnlog is published with its entries, the newest one says whether it has ended. @throws ClientError; GoesOn */
  async #learnEnd({ tiles, verdict, evidence }: Followed<KeptCheckpoint>): Promise<void> {
    if (this.#known.end || this.#seen === tiles.size) return;
    this.#hasEntries ||= await isServed(this.#served, OPERATOR_KEY);
    const newest = this.#hasEntries
      ? await new StaticLog(this.#served, tiles, verdict, evidence.shown!).newest()
      : null;
    if (newest && logEndOf(newest.entry, tiles.size)) {
      await this.#options.onFrozen?.(newest.entry);
      this.#known.end = newest;
    }
    this.#seen = tiles.size;
  }

  /** Removes the partial tiles and bundles of the last checkpoint, and of rounds since that failed, which now have more hashes. */
  #prune(from: number, size: number): void {
    for (let level = 0; size >= FULL_TILE ** level; level++) {
      const [first, nodes] = [Math.floor(from / FULL_TILE ** (level + 1)), Math.floor(size / FULL_TILE ** level)];
      for (const name of level === 0 ? ([level, "entries"] as const) : [level])
        for (const index of this.#mirror.partial(name, first, Math.floor(nodes / FULL_TILE)))
          this.#mirror.prune(name, index, Math.floor(nodes / FULL_TILE) === index ? nodes % FULL_TILE : 0);
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
      const wrong = firstDiffering(served, hashes);
      if (wrong >= 0)
        throw this.#copy.caught(
          "changed-entry",
          `Entry ${index * FULL_TILE + wrong} is not served as it was mirrored.`,
          {
            ...evidence,
            entry: encodeBase64(served.entries[wrong]!),
          },
        );
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
        throw this.#copy.caught("missing-entry", `${error.message} Its entries were mirrored.`, evidence);
      }
      onMissing?.(tilePath({ level: "entries", index, width: FULL_TILE }));
      return undefined;
    }
  }
}

async function isServed(served: ServedTiles, path: string): Promise<boolean> {
  try {
    await served.file(`/${path}`);
    return true;
  } catch (error) {
    if (error instanceof NotServed) return false;
    throw error;
  }
}
