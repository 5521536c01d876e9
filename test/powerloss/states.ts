/** States in which a power failure may leave a disk: what is certain, and a chosen part of the rest. */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../reliability/random.js";
import { type Change, type DataChange, type Disk, File, type Folder, isLockFile } from "./record/disk.js";

const SECTOR = 512;
const PAGE = 4096;
/** Length of LMDB's lock file, of which nothing is known. */
const LOCK_BYTES = 8272;

/**
 * Which part of what was not flushed is on disk. A file system writes whole sectors, and each as it was at some moment; so of
 * the changes of one sector, all up to one of them are there.
 */
export const SHAPES = [
  "nothing",
  "everything",
  /** Each change by chance. */
  "subset",
  /** What came later, but not what came before: the order is another one. */
  "later",
  /** Each sector by chance. */
  "torn at 512",
  /** Each page by chance. */
  "torn at 4096",
  /** All names and lengths, but no content: zeros. */
  "zeros",
  /** Files end early. */
  "short",
  /** All content, but no names. */
  "nameless",
  /** Each file and each name in a way of its own. */
  "mixed",
] as const;
export type Shape = (typeof SHAPES)[number];

const SINGLE = SHAPES.filter((shape) => shape !== "mixed");

/** Chooses for one state. */
class Choice {
  readonly #random: Random;
  readonly #shape: Shape;
  readonly #probability: number;
  readonly #threshold: number;
  /** A rename is one change with two names. */
  readonly #names = new Map<Change, boolean>();
  readonly cut: number;

  constructor(random: Random, shape: Shape, cut: number, oldest: number) {
    this.#random = random;
    this.#shape = shape;
    this.cut = cut;
    this.#probability = random.pick([0.1, 0.5, 0.9]);
    this.#threshold = oldest + random.below(cut - oldest + 2);
  }

  hasName(change: Change): boolean {
    if (change.flushed <= this.cut) return true;
    const known = this.#names.get(change);
    if (known !== undefined) return known;
    const chosen = this.#chooseName(change);
    this.#names.set(change, chosen);
    return chosen;
  }

  #chooseName({ at }: Change): boolean {
    const random = this.#random;
    if (this.#shape === "nothing" || this.#shape === "nameless") return false;
    if (this.#shape === "subset") return random.chance(this.#probability);
    if (this.#shape === "later") return at >= this.#threshold;
    if (this.#shape === "mixed") return random.chance(0.7);
    return true;
  }

  contentOf(file: File): Buffer {
    const changes = file.changes.filter(({ at }) => at <= this.cut);
    const shape = this.#shape === "mixed" ? this.#random.pick(SINGLE) : this.#shape;
    const isCertain = (change: DataChange) => change.flushed <= this.cut;
    const open = changes.filter((change) => !isCertain(change));
    // A flush keeps the length that the file had then, or a later one.
    const possible = lengthsOf(changes).slice(changes.findLastIndex(isCertain) + 1);
    const content = Buffer.alloc(Math.max(0, ...changes.map(endOf)));
    const keeps = this.#kept(shape, open);
    const certainAndKept: DataChange[] = [];
    for (const change of changes) {
      if (isCertain(change)) {
        apply(content, change, () => true, SECTOR);
        certainAndKept.push(change);
      } else if (apply(content, change, (sector) => keeps(change, sector), shape === "torn at 4096" ? PAGE : SECTOR))
        certainAndKept.push(change);
    }
    return content.subarray(0, this.#length(shape, possible, lengthsOf(certainAndKept).at(-1)!, open.length > 0));
  }

  /** Whether a sector or page of a change is on disk. */
  #kept(shape: Shape, open: readonly DataChange[]): (change: DataChange, unit: number) => boolean {
    const random = this.#random;
    if (shape === "torn at 512" || shape === "torn at 4096") {
      const size = shape === "torn at 4096" ? PAGE : SECTOR;
      const newest = new Map<number, number>();
      return ({ at }, unit) => {
        let limit = newest.get(unit);
        if (limit === undefined) {
          const moments = open.filter((change) => isIn(change, unit, size)).map((change) => change.at);
          limit = random.pick([-1, ...moments]);
          newest.set(unit, limit);
        }
        return at <= limit;
      };
    }
    const chosen = new Set(open.filter((change) => this.#chooses(shape, change)));
    if (shape === "short") {
      const last = open.length ? random.pick(open).at : -1;
      return ({ at }) => at <= last;
    }
    const later = [...chosen];
    return (change, unit) =>
      chosen.has(change) || later.some((other) => other.at > change.at && isIn(other, unit, SECTOR));
  }

  #chooses(shape: Shape, { at }: DataChange): boolean {
    if (shape === "everything" || shape === "nameless") return true;
    if (shape === "subset") return this.#random.chance(this.#probability);
    return shape === "later" && at >= this.#threshold;
  }

  #length(shape: Shape, possible: readonly number[], kept: number, isOpen: boolean): number {
    const random = this.#random;
    const newest = possible.at(-1)!;
    if (!isOpen || shape === "everything" || shape === "zeros" || shape === "nameless") return newest;
    if (shape === "nothing") return possible[0]!;
    const [least, most] = [Math.min(...possible), Math.max(...possible)];
    if (shape === "short") return random.pick([random.pick(possible), least + random.below(most - least + 1)]);
    return random.pick([Math.min(most, Math.max(least, kept)), newest]);
  }

  lockFile(): Buffer | null {
    const random = this.#random;
    const kind = random.pick(["absent", "zeros", "garbage"]);
    if (kind === "absent") return null;
    return Buffer.from(Array.from({ length: LOCK_BYTES }, () => (kind === "zeros" ? 0 : random.below(256))));
  }
}

const endOf = ({ offset, bytes }: DataChange): number => offset + (bytes?.length ?? 0);

/** The length before the first change, and after each. */
function lengthsOf(changes: readonly DataChange[]): number[] {
  const lengths = [0];
  for (const change of changes) lengths.push(change.bytes ? Math.max(lengths.at(-1)!, endOf(change)) : change.offset);
  return lengths;
}

const isIn = (change: DataChange, unit: number, size: number): boolean =>
  change.bytes !== null && change.offset < (unit + 1) * size && endOf(change) > unit * size;

/** Makes a change, in those units that are there. @returns whether any is */
function apply(content: Buffer, change: DataChange, isThere: (unit: number) => boolean, size: number): boolean {
  const { offset, bytes } = change;
  if (!bytes) {
    if (!isThere(Math.floor(offset / size))) return false;
    content.fill(0, offset);
    return true;
  }
  let any = false;
  for (let from = offset; from < endOf(change); ) {
    const unit = Math.floor(from / size);
    const end = Math.min(endOf(change), (unit + 1) * size);
    if (isThere(unit)) {
      bytes.copy(content, from, from - offset, end - offset);
      any = true;
    }
    from = end;
  }
  return any;
}

/** The oldest change that is not certain at a moment; the moment itself if there is none. */
function oldestOpen(disk: Disk, cut: number): number {
  let oldest = cut;
  const see = ({ at, flushed }: Change) => {
    if (at <= cut && flushed > cut && at < oldest) oldest = at;
  };
  const seen = new Set<Folder>();
  const walk = (folder: Folder) => {
    if (seen.has(folder)) return;
    seen.add(folder);
    for (const { change, target } of folder.changes) {
      see(change);
      if (target instanceof File) target.changes.forEach(see);
      else if (target) walk(target);
    }
  };
  walk(disk.root);
  return oldest;
}

/**
 * Writes the state of a disk after the event `cut` into a folder that does not exist.
 * @returns a hash of the state
 */
export function writeState(disk: Disk, cut: number, shape: Shape, random: Random, into: string): string {
  const choice = new Choice(random, shape, cut, oldestOpen(disk, cut));
  const hash = createHash("sha1");
  const write = (folder: Folder, path: string) => {
    mkdirSync(path);
    const names = new Map<string, File | Folder>();
    for (const { change, name, target } of folder.changes) {
      if (change.at > cut || !choice.hasName(change)) continue;
      if (target) names.set(name, target);
      else names.delete(name);
    }
    for (const [name, target] of names) {
      const place = join(path, name);
      hash.update(`${place.slice(into.length)}\0`);
      if (!(target instanceof File)) write(target, place);
      else {
        const content = isLockFile(name) ? choice.lockFile() : choice.contentOf(target);
        if (!content) continue;
        if (!isLockFile(name)) hash.update(content);
        writeFileSync(place, content, { mode: 0o600 });
      }
    }
  };
  write(disk.root, into);
  return hash.digest("hex");
}
