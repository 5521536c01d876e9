/**
 * Publishes a tiled log: a verified copy in a folder or bucket, which readers take for the log. Tiles and bundles are made,
 * never replaced; the checkpoint comes last, and never goes back.
 *
 * If we crash here: what was made lies beyond the checkpoint. The next run reads it, and goes on behind it.
 */
import { CairnlogError } from "../../engine/base/error.js";
import {
  formatVkey,
  type NoteKey,
  type Policy,
  type PolicyVerdict,
  parseCheckpointText,
  parseNote,
  parseTilePath,
  parseVkey,
  type TileName,
  tilePath,
  verifyByPolicy,
} from "../../engine/verify/index.js";
import { ClientError } from "../client/base/error.js";
import type { LogEnd } from "../client/base/types.js";
import type { AuthenticTiles } from "../client/log/authentic.js";
import { FULL_TILE, type ServedTiles } from "../client/log/served.js";
import { entriesPath } from "../client/static/layout.js";
import { Misbehaviour, OlderHead } from "../monitor/alarm.js";
import { type CopyStore, type KnownCheckpoint, OtherLog, TiledCopy } from "../monitor/tiled/copy.js";
import { Content, type Maker, oldParts, oldRuns, putPage } from "./content.js";
import type { EntrySource } from "./source.js";
import { LEFT_FOR_MS, type Stored, type Target } from "./target.js";

const CHECKPOINT = "checkpoint";
const VKEY = "vkey";
/** How often a round is begun again because another publisher was faster. */
const TRIES = 5;

/** The target is not one for this log: it has another one, or more of it. */
export class Refused extends ClientError {
  /** Whether the source may only be behind. */
  readonly mayPass: boolean;

  constructor(sentence: string, mayPass: boolean, options: ErrorOptions = {}) {
    super("stale-answer", sentence, options);
    this.mayPass = mayPass;
  }
}

/** The target has other bytes than the log, which has not changed: somebody changed them, or publishes a fork. */
export class WrongTarget extends CairnlogError {
  constructor(target: Target, path: string, why = "") {
    super(
      "corrupt-log",
      `${target.name} has another ${path} than the log${why && ` (${why})`}: it was changed there, or broken off, or somebody publishes a fork. Nothing was replaced. Find out who wrote it before you remove it.`,
    );
  }
}

/** Another publisher has replaced the checkpoint meanwhile. */
class Overtaken extends Error {}

interface PublisherOptions {
  readonly source: ServedTiles;
  readonly target: Target;
  /** The entries of the source, if they are published, too. */
  readonly entries: EntrySource | null;
  /** Which log is published, and which witnesses must have cosigned. */
  readonly policy: Policy;
  /** Whether the user named the key, so that one in the target may give way to it. */
  readonly isPinned: boolean;
  /** Whether partial tiles stay for ever. */
  readonly keepPartial: boolean;
  /** Called with how far a round has come. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** What a round has done. */
export interface Published {
  readonly verdict: PolicyVerdict;
  /** Whether it has replaced the checkpoint. */
  readonly isNew: boolean;
  /** Number of objects that were made, and their bytes. */
  readonly made: number;
  readonly bytes: number;
  /** Whether the target has a page that is not ours, so that the explorer is not put there. */
  readonly hasOtherPage: boolean;
  /** How the log ended, where entries are published; null if it may grow. */
  readonly end: LogEnd | null;
}

/** What a round looks at again that was published before: `edge` is what the checkpoint's newest entry hangs below. */
export type Again = "nothing" | "edge" | "all";

/** The key in a target, or else the one that the source shows. @throws ClientError; CairnlogError `invalid-key`; the target's */
export async function shownKey(source: ServedTiles, target: Target): Promise<{ key: NoteKey; isNew: boolean }> {
  const stored = await target.read(VKEY);
  const text = stored ? new TextDecoder().decode(stored.bytes) : await source.text(`/${VKEY}`);
  return { key: parseVkey(text.trimEnd()), isNew: !stored };
}

export class Publisher {
  readonly #options: PublisherOptions;
  /** The newest checkpoint that was published, or was there. */
  #newest: ({ readonly note: string } & Pick<Published, "verdict" | "end">) | null = null;
  /** Whether the explorer is there; null before the first round. */
  #hasPage: boolean | null = null;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /**
   * One round: the newest checkpoint of the source and all that it covers.
   * @throws Refused if the target has another log or a larger tree; WrongTarget; Misbehaviour of the log; ClientError if source
   *   or store cannot be asked; the target's errors
   */
  async round(again: Again = "nothing"): Promise<Published> {
    for (let tries = 1; ; tries++)
      try {
        return await this.#round(again);
      } catch (error) {
        if (error instanceof Overtaken && tries < TRIES) continue;
        throw this.#judged(error);
      }
  }

  async #round(again: Again): Promise<Published> {
    const { source, target, entries, policy, isPinned, onProgress } = this.#options;
    if (again === "nothing" && this.#newest && (await source.checkpoint()) === this.#newest.note)
      return {
        ...{ verdict: this.#newest.verdict, isNew: false, made: 0, bytes: 0, end: this.#newest.end },
        hasOtherPage: this.#hasPage === false,
      };
    const store = new TargetStore({ target, entries, policy, isPinned }, again);
    const copy = new TiledCopy({ served: source, policy, store, onProgress });
    const from = async (known: KnownCheckpoint | null, tiles: AuthenticTiles) => {
      await store.begin(known?.treeSize ?? 0, tiles);
      if (!known || again === "all" || !store.isWhole) return 0;
      return again === "edge" ? Math.max(0, known.treeSize - 1) : known.treeSize;
    };
    // Where the checkpoint was there already, the entries may come later.
    const { verdict, evidence } = await copy.follow(from, () => store.finish());
    // The checkpoint may be there without its key: somebody has removed it.
    if (again === "all") await store.keepKey(verdict.log);
    if (entries) this.#hasPage ??= await putPage(target, (path, page) => store.create(path, page), again === "all");
    const { isNew, made, bytes, end } = store;
    this.#newest = { note: evidence.shown!, verdict, end };
    return { verdict, isNew, made, bytes, end, hasOtherPage: this.#hasPage === false };
  }

  /** Refusals in the words of who publishes. */
  #judged(error: unknown): unknown {
    const { target, source, policy } = this.#options;
    if (error instanceof Overtaken) return new ClientError("no-answer", error.message);
    if (error instanceof OtherLog) return new Refused(error.message, false, { cause: error });
    if (error instanceof OlderHead)
      return new Refused(
        `${target.name} has a larger tree than ${source.url}: what was published is never taken back. ${error.misbehaviour.message}`,
        true,
        { cause: error },
      );
    // A key of another log does not accuse this one.
    if (error instanceof Misbehaviour && error.kind === "bad-signature") {
      const shown = parseNote(error.evidence.shown)?.text;
      const origin = shown === undefined ? undefined : parseCheckpointText(shown)?.origin;
      const names = policy.logs.map(({ key }) => key.name);
      if (origin !== undefined && !names.includes(origin))
        return new Refused(`${source.url} is the log ${origin}, and not ${names.join(" or ")}.`, false, {
          cause: error,
        });
    }
    return error;
  }

  /** Removes what another object replaced a day ago: partial tiles and bundles, runs of the index, parts of the page. @returns how many */
  async prune(size: number): Promise<number> {
    const { target, keepPartial } = this.#options;
    if (keepPartial) return 0;
    const { entries } = this.#options;
    let removed = await this.#pruneTiles("tile", size);
    if (!entries) return removed;
    removed += await this.#pruneTiles("entries", size);
    for (const path of [...(await oldRuns(target, size)), ...(await oldParts(target))]) {
      await target.remove(path);
      removed++;
    }
    return removed;
  }

  /** @param folder of tiles, or of bundles as they are served, which have the same names */
  async #pruneTiles(folder: "tile" | "entries", size: number): Promise<number> {
    const { target } = this.#options;
    let removed = 0;
    let full = "";
    for await (const { path, modified } of target.list(folder)) {
      const name = parseTilePath(path.split("/").slice(folder === "tile" ? 1 : 0));
      // Files of others stay.
      if (!name) continue;
      const whole = folder === "tile" ? tilePath({ ...name, width: FULL_TILE }) : entriesPath(name.index, FULL_TILE);
      if (path === whole) {
        const isOld = Date.now() - modified > LEFT_FOR_MS;
        const level = name.level === "entries" ? 0 : name.level;
        full = isOld && (name.index + 1) * FULL_TILE ** (level + 1) <= size ? path : "";
      } else if (full === whole) {
        await target.remove(path);
        removed++;
      }
    }
    return removed;
  }
}

/** A target as the store of a copy. */
class TargetStore implements CopyStore, Maker {
  readonly name: string;
  readonly #target: Target;
  readonly #policy: Policy;
  readonly #isPinned: boolean;
  readonly #content: Content | null;
  /** Whether it is looked whether all entries of the checkpoint that is there are published. */
  readonly #isToLook: boolean;
  /** Whether nothing of that checkpoint is missing, as far as is known. */
  isWhole = true;
  /** Size of the tree whose index is there. */
  #indexed = 0;
  #size = 0;
  #isFinished = false;
  /** Whether everything is read before it is made: until something is missing, or in all of a round that compares all. */
  #isReading = true;
  readonly #comparesAll: boolean;
  /** Tiles that `readLeft` has found, for `write` to compare. */
  readonly #left = new Map<string, Uint8Array>();
  #before: Stored | undefined;
  isNew = false;
  made = 0;
  bytes = 0;

  constructor(
    { target, entries, policy, isPinned }: Pick<PublisherOptions, "target" | "entries" | "policy" | "isPinned">,
    again: Again,
  ) {
    this.name = target.name;
    this.#target = target;
    this.#policy = policy;
    this.#isPinned = isPinned;
    this.#isToLook = again !== "nothing";
    this.#comparesAll = again === "all";
    this.#content = entries && new Content(target, entries, this, this.#comparesAll);
  }

  /** @throws Refused if it is not signed by the log */
  async checkpoint(): Promise<KnownCheckpoint | null> {
    this.#before = await this.#target.read(CHECKPOINT);
    if (!this.#before) return null;
    const note = new TextDecoder().decode(this.#before.bytes);
    const verdict = await verifyByPolicy(note, this.#policy);
    if (verdict) {
      const { treeSize } = verdict.checkpoint;
      if (this.#content && this.#isToLook) this.isWhole = await Content.isWhole(this.#target, treeSize);
      if (this.isWhole && !this.#comparesAll) this.#indexed = treeSize;
      return { ...verdict.checkpoint, note };
    }
    const text = parseNote(note)?.text;
    const origin = text === undefined ? undefined : parseCheckpointText(text)?.origin;
    throw new Refused(
      `The checkpoint in ${this.name} is ${origin === undefined ? "none" : `of ${origin}`}, and not signed by ${this.#policy.logs
        .map(({ key }) => formatVkey(key))
        .join(" or ")}.`,
      false,
    );
  }

  /** @throws GoesOn if the log goes on behind an end that was published */
  async begin(known: number, tiles: AuthenticTiles): Promise<void> {
    // The newest entry of later rounds was seen by those before.
    await this.#content?.begin(this.#isToLook ? known : 0, tiles);
  }

  get end(): LogEnd | null {
    return this.#content?.end ?? null;
  }

  async read(name: TileName): Promise<Uint8Array | undefined> {
    return (await this.#target.read(tilePath(name)))?.bytes;
  }

  async readLeft(name: TileName): Promise<Uint8Array | undefined> {
    if (!this.#isReading) return undefined;
    const path = tilePath(name);
    const bytes = await this.read(name);
    // A bundle that is right is not written again.
    if (bytes && name.level !== "entries") this.#left.set(path, bytes);
    // Bundles are made in their order: behind the first that is not there, there are few.
    if (!bytes && name.level === "entries" && !this.#comparesAll) this.#isReading = false;
    return bytes;
  }

  async write(name: TileName, bytes: Uint8Array): Promise<void> {
    const path = tilePath(name);
    const left = this.#left.get(path);
    this.#left.delete(path);
    await this.make(path, bytes, left);
    if (name.level === 0 && this.#content) await this.#content.take(name.index, bytes);
    if (name.level === 0) this.#size = Math.max(this.#size, name.index * FULL_TILE + name.width);
  }

  async create(path: string, bytes: Uint8Array): Promise<boolean> {
    if (!(await this.#target.create(path, bytes))) return false;
    this.made++;
    this.bytes += bytes.length;
    return true;
  }

  /** @param left what is there, if that is known */
  async make(path: string, bytes: Uint8Array, left?: Uint8Array): Promise<void> {
    if (left === undefined && (await this.create(path, bytes))) return;
    const there = left ?? (await this.#target.read(path))?.bytes;
    if (!there || Buffer.compare(there, bytes) !== 0) throw this.wrong(path, !there);
  }

  wrong(path: string, isGone = false, why?: string): Error {
    // Removed since.
    if (isGone) return new Overtaken(`${path} was there, and is not any more.`);
    return new WrongTarget(this.#target, path, why);
  }

  /** Publishes what follows from the entries, which were written. */
  async finish(): Promise<void> {
    if (this.#isFinished || !this.#content || !this.#size) return;
    await this.#content.finish(this.#size, this.#indexed);
    this.#isFinished = true;
  }

  async keep(note: string, { log }: PolicyVerdict): Promise<void> {
    await this.finish();
    await this.keepKey(log);
    const bytes = Buffer.from(note);
    const isDone = this.#before
      ? await this.#target.replace(CHECKPOINT, bytes, this.#before)
      : await this.#target.create(CHECKPOINT, bytes);
    if (!isDone) {
      // The answer to a request that was carried out may have been lost.
      await this.#expectCheckpoint(bytes);
    }
    this.isNew = true;
  }

  async #expectCheckpoint(bytes: Uint8Array | undefined): Promise<void> {
    const now = (await this.#target.read(CHECKPOINT))?.bytes;
    if (bytes ? now && Buffer.compare(now, bytes) === 0 : !now) return;
    throw new Overtaken(`The checkpoint in ${this.name} was replaced meanwhile: another publisher is at work.`);
  }

  async replaceKey(path: string, bytes: Uint8Array, before: Stored): Promise<void> {
    // Behind a newer checkpoint, the key of before may be one that the log has given up.
    await this.#expectCheckpoint(this.#before?.bytes);
    if (!(await this.#target.replace(path, bytes, before)))
      throw new Overtaken(`${path} in ${this.name} was replaced meanwhile.`);
  }

  /** Publishes the key that the checkpoint is verified with, which is there before it. @throws Overtaken */
  async keepKey(log: NoteKey): Promise<void> {
    const bytes = Buffer.from(`${formatVkey(log)}\n`);
    if (await this.#target.create(VKEY, bytes)) return;
    const there = await this.#target.read(VKEY);
    if (there && Buffer.compare(there.bytes, bytes) === 0) return;
    if (!there || !this.#isPinned) throw new Overtaken(`The key in ${this.name} was replaced meanwhile.`);
    await this.replaceKey(VKEY, bytes, there);
  }
}
