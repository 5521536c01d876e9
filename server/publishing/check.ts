/**
 * Checks everything that was published: every tile, bundle and run of the index of the checkpoint that is there. Where tiles and
 * bundles contradict one another, those count that the tile above agrees with. Nothing is changed.
 */
import { hash } from "node:crypto";
import { CairnlogError } from "../../engine/base/error.js";
import { Lock } from "../../engine/base/lock.js";
import { toHex } from "../../engine/verify/bytes/encoding.js";
import { isCut, withholdingFault, withholdingIn } from "../../engine/verify/events/withheld.js";
import {
  type Entry,
  formatVkey,
  OperatorKeys,
  type Policy,
  type PolicyVerdict,
  parsePublicKey,
  rfc6962,
  tilePath,
  verifyByPolicy,
} from "../../engine/verify/index.js";
import { peakPositions } from "../../engine/verify/tree/merkle.js";
import { ClientError, isAbsence } from "../client/base/error.js";
import { AuthenticTiles, WrongTile } from "../client/log/authentic.js";
import { type Files, FULL_TILE, HASH_BYTES, readBundle } from "../client/log/served.js";
import { type BundledEntry, bundleFault, parseBundle } from "../client/static/bundle.js";
import { goesOn } from "../client/static/end.js";
import { entriesPath, OPERATOR_KEY, runsOf } from "../client/static/layout.js";
import { objectsOf, recordsOfBundle, sortedRecords } from "./runs.js";
import { headFault } from "./source.js";

/** Bundles that are read at the same time. */
const TOGETHER = 8;

interface Finding {
  readonly path: string;
  readonly what: "missing" | "wrong";
  readonly message: string;
}

export interface PublishedReport {
  readonly ok: boolean;
  readonly verdict: PolicyVerdict;
  /** Whether entries are published, too. */
  readonly hasEntries: boolean;
  /** Objects that were read. */
  readonly objects: number;
  readonly differences: readonly Finding[];
}

interface CheckOptions {
  readonly files: Files;
  readonly policy: Policy;
  readonly progress?: (done: number, total: number) => void;
  readonly signal: AbortSignal;
}

/** @throws ClientError if it cannot be read, or `not-found` without a checkpoint; CairnlogError `closed` */
export async function checkPublished(options: CheckOptions): Promise<PublishedReport> {
  return new Check(options).all();
}

class Check {
  readonly #options: CheckOptions;
  readonly #differences: Finding[] = [];
  #objects = 0;
  #size = 0;
  #operators: OperatorKeys | null = null;
  #hasEntries = false;
  readonly #records: Uint8Array[] = [];
  readonly #unpacking = new Lock();
  /** Entries without their payload, and those by which one is withheld: by id, with the path of the bundle. */
  readonly #withheld = new Map<number, { readonly entry: Entry; readonly path: string }>();
  readonly #withholding = new Map<number, Entry>();
  /** Level → hashes of the tree, as tiles or bundles have them. */
  readonly #levels: Uint8Array[][] = [];

  constructor(options: CheckOptions) {
    this.#options = options;
  }

  async all(): Promise<PublishedReport> {
    const { files, policy } = this.#options;
    const bytes = await this.#read("checkpoint");
    if (!bytes) throw new ClientError("not-found", `There is no checkpoint in ${files.server}.`);
    const verdict = await verifyByPolicy(new TextDecoder().decode(bytes), policy);
    if (!verdict?.hasQuorum)
      throw new ClientError("log-misbehaved", `The checkpoint in ${files.server} is not signed as the policy demands.`);
    const { treeSize, rootHash } = verdict.checkpoint;
    this.#size = treeSize;
    await this.#same("vkey", Buffer.from(`${formatVkey(verdict.log)}\n`), await this.#read("vkey"));
    await this.#readOperators();
    await this.#leaves(treeSize);
    await this.#upper(treeSize);
    await this.#root(treeSize, rootHash);
    this.#payloads();
    if (this.#hasEntries) await this.#index(treeSize);
    const differences = this.#differences;
    return { ok: !differences.length, verdict, hasEntries: this.#hasEntries, objects: this.#objects, differences };
  }

  async #read(path: string): Promise<Uint8Array | undefined> {
    this.#options.signal.throwIfAborted();
    this.#objects++;
    return this.#options.files.rootBytes(`/${path}`).catch((error: unknown) => {
      if (!isAbsence(error)) throw error;
      this.#objects--;
      return undefined;
    });
  }

  /** Compares what is there with what must be. */
  #same(path: string, expected: Uint8Array, there: Uint8Array | undefined): void {
    if (there && Buffer.compare(there, expected) === 0) return;
    this.#find(path, there, "It has other bytes than the tree.");
  }

  #find(path: string, there: unknown, fault: string): void {
    const what = there === undefined ? "missing" : "wrong";
    const message = there === undefined ? `${path} is missing.` : `${path} is wrong. ${fault}`;
    this.#differences.push({ path, what, message });
  }

  async #readOperators(): Promise<void> {
    const bytes = await this.#read(OPERATOR_KEY);
    // One of the entries may be there although the keys are lost.
    this.#hasEntries = bytes !== undefined || (await this.#read(entriesPath(0, FULL_TILE))) !== undefined;
    if (!this.#hasEntries) return;
    try {
      const { public_key, operators } = JSON.parse(new TextDecoder().decode(bytes));
      this.#operators = await OperatorKeys.verify(operators, parsePublicKey(public_key));
    } catch (error) {
      if (!(error instanceof CairnlogError || error instanceof SyntaxError || error instanceof TypeError)) throw error;
      this.#find(OPERATOR_KEY, bytes, error.message);
    }
  }

  /** Tiles of level 0, and both kinds of bundles. */
  async #leaves(size: number): Promise<void> {
    const bundles = Math.ceil(size / FULL_TILE);
    const above: Uint8Array[] = [];
    let upper: { readonly index: number; readonly bytes: Uint8Array | undefined } = { index: -1, bytes: undefined };
    for (let first = 0; first < bundles; first += TOGETHER) {
      const tile = Math.floor(first / FULL_TILE);
      if (upper.index !== tile) {
        const width = Math.min(FULL_TILE, Math.floor(size / FULL_TILE) - tile * FULL_TILE);
        upper = {
          index: tile,
          bytes: width ? await this.#read(tilePath({ level: 1, index: tile, width })) : undefined,
        };
      }
      const indexes = Array.from({ length: Math.min(TOGETHER, bundles - first) }, (_, i) => first + i);
      const hashes = await Promise.all(indexes.map((index) => this.#bundle(index, size, upper.bytes)));
      for (const tile of hashes) if (tile.length === FULL_TILE * HASH_BYTES) above.push(rootOver(tile));
      if (indexes.at(-1) === bundles - 1 && size % FULL_TILE) this.#levels[0] = [hashes.at(-1)!];
      this.#options.progress?.(Math.min(size, (first + indexes.length) * FULL_TILE), size);
    }
    this.#levels[1] = above;
  }

  /** @returns the hashes of the leaves */
  async #bundle(index: number, size: number, upper: Uint8Array | undefined): Promise<Uint8Array> {
    const width = Math.min(FULL_TILE, size - index * FULL_TILE);
    const paths = {
      tile: tilePath({ level: 0, index, width }),
      hashes: tilePath({ level: "entries", index, width }),
      entries: entriesPath(index, width),
    };
    const read = await Promise.all([
      this.#read(paths.tile),
      this.#read(paths.hashes),
      this.#hasEntries ? this.#read(paths.entries) : undefined,
    ]);
    // What is unpacked of one bundle may be hundreds of megabytes: there is one of them at a time.
    return this.#unpacking.run(() => this.#judged(index, width, paths, read, upper));
  }

  async #judged(
    index: number,
    width: number,
    paths: { readonly tile: string; readonly hashes: string; readonly entries: string },
    [tile, hashes, bytes]: readonly (Uint8Array | undefined)[],
    upper: Uint8Array | undefined,
  ): Promise<Uint8Array> {
    const entries = bytes && (await parseBundle(bytes));
    const bundle = hashes && readBundle(hashes, width);
    const candidates = [
      bundle?.bytes.length === hashes?.length ? leavesOf(bundle?.entries) : undefined,
      tile,
      leavesOf(entries?.map(({ entry }) => Buffer.from(String(entry.entry_hash)))),
    ].filter((one) => one?.length === width * HASH_BYTES) as Uint8Array[];
    const expected = upper?.subarray((index % FULL_TILE) * HASH_BYTES, ((index % FULL_TILE) + 1) * HASH_BYTES);
    const truth =
      candidates.find((one) => width === FULL_TILE && expected && Buffer.compare(rootOver(one), expected) === 0) ??
      candidates.find((one) => candidates.filter((other) => Buffer.compare(one, other) === 0).length > 1) ??
      candidates[0] ??
      new Uint8Array(width * HASH_BYTES);
    this.#same(paths.tile, truth, tile);
    if (!bundle || bundle.bytes.length !== hashes?.length || Buffer.compare(leavesOf(bundle.entries)!, truth) !== 0)
      this.#find(paths.hashes, hashes, "Its entries are not those of the tree.");
    if (this.#hasEntries) await this.#entries(paths.entries, bytes, entries, index, truth);
    return truth;
  }

  async #entries(
    path: string,
    bytes: Uint8Array | undefined,
    entries: readonly BundledEntry[] | undefined,
    index: number,
    truth: Uint8Array,
  ): Promise<void> {
    const fault = !entries
      ? "It is no bundle."
      : (bundleFault(entries, index, truth, sha256) ??
        goesOn(entries, index, this.#size)?.message ??
        (this.#operators && (await headFault(entries, this.#operators))));
    for (const { entry } of fault ? [] : entries!) {
      if (isCut(entry)) this.#withheld.set(entry.id, { entry, path });
      if (withholdingIn(entry)) this.#withholding.set(entry.id, entry);
    }
    if (fault) this.#find(path, bytes, fault);
    else if (truth.length === FULL_TILE * HASH_BYTES) this.#records[index] = recordsOfBundle(entries!, index);
  }

  /** A payload is missing where another entry withholds it, and nowhere else. */
  #payloads(): void {
    for (const { entry, path } of this.#withheld.values()) {
      const fault = withholdingFault(entry, this.#withholding.get(entry.withheld_by ?? 0));
      if (fault !== undefined) this.#find(path, entry, `Entry ${entry.id}: ${fault}`);
    }
  }

  /** Tiles above the leaves. */
  async #upper(size: number): Promise<void> {
    for (let level = 1; size >= FULL_TILE ** level; level++) {
      const hashes = this.#levels[level]!;
      this.#levels[level + 1] = [];
      for (let index = 0; index * FULL_TILE < hashes.length; index++) {
        const tile = Buffer.concat(hashes.slice(index * FULL_TILE, (index + 1) * FULL_TILE));
        const width = tile.length / HASH_BYTES;
        const path = tilePath({ level, index, width });
        this.#same(path, tile, await this.#read(path));
        if (width === FULL_TILE) this.#levels[level + 1]!.push(rootOver(tile));
      }
    }
  }

  async #root(size: number, rootHash: string): Promise<void> {
    const tileOf = (level: number, index: number) =>
      level === 0
        ? this.#levels[0]![0]!
        : Buffer.concat(this.#levels[level]!.slice(index * FULL_TILE, (index + 1) * FULL_TILE));
    try {
      const tiles = await AuthenticTiles.open(size, rootHash, {
        served: async (level, index) => tileOf(level, index),
        kept: () => undefined,
      });
      if (toHex(await tiles.fold(peakPositions(size))) === rootHash) return;
    } catch (error) {
      if (!(error instanceof WrongTile)) throw error;
    }
    this.#find("checkpoint", true, "Tiles and bundles do not make its root.");
  }

  /** Runs of the index, if every bundle could be read: else nobody knows what belongs there. */
  async #index(size: number): Promise<void> {
    const bundles = Math.floor(size / FULL_TILE);
    if (this.#records.filter(Boolean).length < bundles) return;
    for (const run of runsOf(size)) {
      const records = sortedRecords(this.#records.slice(run.from / FULL_TILE, run.to / FULL_TILE));
      for (const [path, bytes] of objectsOf(run, records)) this.#same(path, bytes, await this.#read(path));
    }
  }
}

const sha256 = (bytes: Uint8Array): Uint8Array => hash("sha256", bytes, "buffer");

const leavesOf = (entries: readonly Uint8Array[] | undefined): Uint8Array | undefined =>
  entries && Buffer.concat(entries.map((entry) => rfc6962.leafHash(entry)));

function rootOver(hashes: Uint8Array): Uint8Array {
  const count = hashes.length / HASH_BYTES;
  return rfc6962.rootOf(Array.from({ length: count }, (_, i) => hashes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)));
}
