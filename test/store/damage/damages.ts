/** Ways to damage the files of a log, and the results of opening them. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { anyEvent } from "../../anyevent.js";

const OPEN = fileURLToPath(new URL("open.mjs", import.meta.url));
const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
export const PAGE = 4096;
const MAGIC = 0xbeefc0de;
const META_FLAG = 8;
/** The offset in a meta page of the number of the last used page. */
const LAST_PAGE = 144;

/** Pseudo-random bytes, always the same for the same seed. */
function noise(bytes: number, seed: string): Buffer {
  const parts: Buffer[] = [];
  for (let i = 0; 64 * i < bytes; i++) parts.push(createHash("sha512").update(`${seed} ${i}`).digest());
  return Buffer.concat(parts).subarray(0, bytes);
}

const withBytes = (file: Buffer, at: number, bytes: Buffer): Buffer => {
  const changed = Buffer.from(file);
  bytes.copy(changed, Math.min(at, file.length), 0, Math.max(0, Math.min(bytes.length, file.length - at)));
  return changed;
};

/** Length of the part of a file that LMDB uses. Zeros may follow it, as space for later pages. */
export function usedBytes(file: Buffer): number {
  const isData = file.length >= 2 * PAGE && file.readUInt32LE(24) === MAGIC && file.readUInt16LE(18) === META_FLAG;
  return isData ? PAGE * (1 + Math.max(...[0, PAGE].map((at) => file.readUInt32LE(at + LAST_PAGE)))) : file.length;
}
/** Never one of the two meta pages, which have damages of their own. */
const middle = (file: Buffer): number => PAGE * Math.max(2, Math.floor(usedBytes(file) / 2 / PAGE));

/** The rest of a file after the damage; undefined if the file is removed. */
type Damage = (file: Buffer, seed: string) => Buffer | undefined;

export const DAMAGES: Readonly<Record<string, Damage>> = {
  absent: () => undefined,
  empty: () => Buffer.alloc(0),
  "1 byte": (file) => file.subarray(0, 1),
  "100 bytes": (file) => file.subarray(0, 100),
  "cut at a page": (file) => file.subarray(0, middle(file)),
  "cut inside a page": (file) => file.subarray(0, middle(file) + 1000),
  "without its last page": (file) => file.subarray(0, Math.max(0, usedBytes(file) - PAGE)),
  zeros: (file) => Buffer.alloc(file.length),
  "first page overwritten": (file, seed) => withBytes(file, 0, noise(PAGE, seed)),
  "second page overwritten": (file, seed) => withBytes(file, PAGE, noise(PAGE, seed)),
  "both meta pages overwritten": (file, seed) => withBytes(file, 0, noise(2 * PAGE, seed)),
  "a page in the middle overwritten": (file, seed) => withBytes(file, middle(file), noise(PAGE, seed)),
  "a page in the middle zeroed": (file) => withBytes(file, middle(file), Buffer.alloc(PAGE)),
  "random bytes": (file, seed) => noise(file.length, seed),
};

/** Overwrites one page, with noise or zeros. */
export const pageDamage =
  (page: number, isZeroed: boolean): Damage =>
  (file, seed) =>
    withBytes(file, PAGE * page, isZeroed ? Buffer.alloc(PAGE) : noise(PAGE, seed));

/** Changes some bytes of a page, most of them in its header and its offsets. */
export const byteDamage =
  (page: number): Damage =>
  (file, seed) => {
    const changed = Buffer.from(file);
    const random = noise(64, seed);
    for (let i = 0; i < 1 + (random[0]! % 4); i++) {
      const span = random[1 + i]! < 200 ? 128 : PAGE;
      changed[PAGE * page + (random.readUInt16LE(8 + 2 * i) % span)] = random[32 + i]!;
    }
    return changed;
  };

export const FILES = [
  "data.mdb",
  "postings/data.mdb",
  "writer/data.mdb",
  "lock.mdb",
  "postings/lock.mdb",
  "writer/lock.mdb",
] as const;
export type LogFile = (typeof FILES)[number];
export type Opener = "writer" | "reader" | "backup";
export interface Case {
  readonly file: LogFile;
  /** A name in `DAMAGES`, or a description of `change`. */
  readonly damage: string;
  readonly change?: Damage;
  readonly opener: Opener;
}

/** `size` and `wrong` of a log that opened, or the code and the sentence of the error. */
export type Outcome =
  | { readonly size: number; readonly wrong: readonly string[] }
  | { readonly code: string | null; readonly message: string };

export interface Result {
  readonly outcome: Outcome;
  /** Whether the files with data are unchanged. */
  readonly isUntouched: boolean;
}

/** Asserts that the log has all entries and verifies, or that the error says what to do and nothing was written. */
export function expectSoundOrSaid(
  { opener, file, damage }: Case,
  { outcome, isUntouched }: Result,
  size: number,
): void {
  const about = `${opener}, ${file}, ${damage}: ${JSON.stringify(outcome)}`;
  if ("size" in outcome) {
    expect(outcome.size, about).toBe(opener === "writer" ? size + 1 : size);
    // Damage within a record is found by its hash when the record is read.
    if (!isInside(file, damage)) expect(outcome.wrong, about).toEqual([]);
    return;
  }
  expect(isUntouched, about).toBe(true);
  expect(outcome.message, about).toMatch(/\.$/);
  if (isInside(file, damage)) {
    expect(outcome.code, about).not.toBeNull();
    return;
  }
  expect(["corrupt-log", "not-found"], about).toContain(outcome.code);
  expect(outcome.message, about).toMatch(/cairnlog (fsck|restore)|start the service/);
}

const isInside = (file: LogFile, damage: string): boolean =>
  /^(postings\/)?data/.test(file) && /in the middle|inside/.test(damage);

/** A data directory with a log of `entries` entries, and a folder for damaged copies of it. */
export class DamagedLogs {
  readonly folder = mkdtempSync(join(tmpdir(), "cairnlog-damage-"));
  readonly data = join(this.folder, "data");
  readonly key = join(this.data, "operator.pem");
  #copies = 0;

  async build(entries: number): Promise<void> {
    const log = await openLog({ path: join(this.data, "log"), signer: openOperatorKey(this.key), projection });
    const event = (i: number) => anyEvent({ text: "x".repeat((37 * i) % 700) });
    for (let from = 0; from < entries; from += 50)
      await log.append(Array.from({ length: Math.min(50, entries - from) }, (_, i) => event(from + i)));
    await log.close();
  }

  /** A copy of the data directory with one damaged file. */
  damaged(file: LogFile, damage: string, change: Damage = DAMAGES[damage]!): string {
    const copy = join(this.folder, `copy${this.#copies++}`);
    cpSync(this.data, copy, { recursive: true });
    const name = join(copy, "log", file);
    const left = change(readFileSync(name), `${file} ${damage}`);
    if (left) writeFileSync(name, left);
    else rmSync(name);
    return copy;
  }

  /** Opens a damaged copy for each case, all of them in one process. */
  outcomes(cases: readonly Case[]): readonly Result[] {
    const copies = cases.map(({ file, damage, change }) => this.damaged(file, damage, change));
    const before = copies.map(hashes);
    const event = anyEvent({ text: "one more" });
    const lines = cases.map(({ opener }, i) =>
      JSON.stringify({ opener, event, path: join(copies[i]!, "log"), key: join(copies[i]!, "operator.pem") }),
    );
    const { stdout, stderr, status, signal } = spawnSync(process.execPath, [OPEN], {
      cwd: ROOT,
      input: `${lines.join("\n")}\n`,
      encoding: "utf8",
      maxBuffer: 2 ** 28,
    });
    const said = stdout.split("\n").filter(Boolean);
    if (status !== 0) {
      const last = JSON.stringify(cases[Math.ceil(said.length / 2) - 1]);
      throw new Error(`ended with ${signal ?? status} at ${last}: ${stderr}`);
    }
    return copies.map((copy, i) => {
      const outcome = JSON.parse(said[2 * i + 1]!) as Outcome;
      const isUntouched = hashes(copy) === before[i];
      rmSync(copy, { recursive: true });
      return { outcome, isUntouched };
    });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Hashes of the two files with data. */
function hashes(copy: string): string {
  return ["log/data.mdb", "log/postings/data.mdb"]
    .map((name) => join(copy, name))
    .map((name) => (existsSync(name) ? createHash("sha256").update(readFileSync(name)).digest("hex") : "none"))
    .join();
}
