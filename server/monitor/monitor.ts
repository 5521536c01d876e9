/**
 * Follows one log over HTTP. Each round fetches the newest head and every entry up to it, with the head of every size.
 * It checks all of them, and compares some mirrored entries with the served ones. The server chose all received data.
 * Only the folder is trusted.
 *
 * If we crash here: the newest verified head is on disk before anything builds on it. The mirror grows by whole,
 * verified pages. Watched events are reported before this is noted, so they may be reported twice, but are never
 * missed.
 */
import { randomInt } from "node:crypto";
import type { Static, TSchema } from "typebox";
import * as wire from "../../engine/contract/log/log.js";
import { LOG_FROZEN } from "../../engine/log/operator/entries.js";
import { isCut, PAYLOAD_WITHHELD, withoutName } from "../../engine/verify/events/withheld.js";
import {
  type Checkpoint,
  canonicalJson,
  type Entry,
  OperatorKeys,
  type PublicKey,
  parsePublicKey,
  type TreeHead,
  verifyCheckpoint,
  verifyTreeHead,
} from "../../engine/verify/index.js";
import { isOversized } from "../client/base/error.js";
import { Http, type Query } from "../client/base/http.js";
import { ClientError, type Evidence } from "../client/index.js";
import { Watch } from "../client/log/watch.js";
import { CLOCK_SKEW_MS, Misbehaviour, type Misconduct, type MonitorEvidence, OlderHead } from "./alarm.js";
import type { MonitorFolder } from "./folder.js";
import { Mirror } from "./mirror.js";
import { fetchCheckpoint, fetchText, type ServedCheckpoint } from "./tlog.js";
import { namedIn } from "./watched.js";

/** Entries on a page, and the smaller pages that are requested if an answer is too long. */
const PAGE_SIZES = [200, 20, 1] as const;
/** Number of sizes whose heads are requested together: the maximum of `GET /log/heads`. */
const HEADS = 1000;
/** Milliseconds after which a round that lasts asks for the newest head again. */
const TOUCH_MS = 60_000;

/** The first three lines of a checkpoint. */
const CHECKPOINT_LINES = /^[^\n]+\n\d+\n[A-Za-z0-9+/]{43}=\n/;
/** An empty line ends them and any extension lines; signatures follow. */
const isCheckpoint = (note: string): boolean =>
  CHECKPOINT_LINES.test(note) && note.startsWith("\n\n\u2014 ", note.indexOf("\n\n"));

export interface MonitorOptions {
  readonly server: string;
  readonly folder: MonitorFolder;
  readonly fetch: typeof fetch;
  /** Milliseconds for which nodes that are behind are asked again. */
  readonly patience?: number | undefined;
  /** PEM. If absent, the key in the folder is used, or else the first one that the service shows. */
  readonly operatorKey?: string | undefined;
  /** Fingerprints in the log's form. */
  readonly watched?: ReadonlySet<string>;
  /** Called for every entry that names a watched key, at least once. */
  readonly onWatched?: (entry: Entry, fingerprint: string) => Promise<void>;
  /** Told of every entry that hands the log to another operator key, at least once. */
  readonly onRotation?: (entry: Entry) => Promise<void>;
  /** Told of the entry that froze the log, at least once. */
  readonly onFrozen?: (entry: Entry) => Promise<void>;
  /** Whether payloads that the log withholds are taken from the mirror, too; false if absent. */
  readonly obeysWithholding?: boolean;
  /** Told how far a round has come. */
  readonly onProgress?: (what: "entries" | "audit", done: number, total: number) => void;
}

interface RoundOptions {
  /** Whether every mirrored entry is compared with the served one, and not only one page of them. */
  readonly audit?: boolean;
}

export class Monitor {
  readonly #options: MonitorOptions;
  readonly #http: Http;
  readonly #watch: Watch;
  #mirror: Mirror | null = null;
  /** Whether an entry has come since the mirror was opened that withholds a payload. */
  #hasWithheld = false;
  /** When the newest head was asked for last, by a clock that nobody sets. */
  #touchedAt = 0;

  /** @throws TypeError for an invalid address; CairnlogError `invalid-key` */
  constructor(options: MonitorOptions) {
    this.#options = options;
    this.#http = new Http(options.server, options.fetch, undefined, options.patience);
    this.#watch = new Watch(this.#http, options.folder.store, options.operatorKey, (head) => this.#objection(head));
  }

  /** The newest verified head, of this round or an earlier one. */
  async newestHead(): Promise<TreeHead | null> {
    return ((await this.#options.folder.store.load())?.head ?? null) as TreeHead | null;
  }

  /** The newest head whose entries are mirrored. The round may have seen a newer one while it took them. */
  async mirroredHead(): Promise<TreeHead | null> {
    const newest = await this.newestHead();
    return newest?.tree_size === this.size ? newest : (this.#mirror?.head(this.size) ?? null);
  }

  /** Number of mirrored entries; 0 before the first round. */
  get size(): number {
    return this.#mirror?.size ?? 0;
  }

  /** Whether the log, as far as it is mirrored, has ended. */
  get isFrozen(): boolean {
    return this.#mirror?.end != null;
  }

  /**
   * One round: all new entries of the log, verified and mirrored.
   * @throws Misbehaviour; ClientError if the service cannot be asked, `OlderHead` if it shows an older head; CairnlogError
   *   `storage-failed`
   */
  async round({ audit = false }: RoundOptions = {}): Promise<void> {
    let key = await this.#operators();
    this.#mirror ??= await this.#openMirror(key);
    this.#mirror.operators = key;
    await this.#tellWatched();
    // What is signed is held against the mirror as it comes: what the log denies afterwards keeps no alarm away.
    // The checkpoint is fetched first, so that the head that is fetched next must cover it.
    const note = await this.#checkpoint();
    if (note !== null) await this.#expectAtLeast(this.#mirror, key, note);
    const shown = await fetchCheckpoint(this.#http.server, this.#options.fetch);
    const isKept = shown !== null && (await this.#keepShown(this.#mirror, shown));
    const head = await this.#newest();
    // The log may have been handed over in the middle of this round.
    key = await this.#watch.operators();
    this.#mirror.operators = key;
    const before = this.#mirror.size;
    if (head) await this.#follow(this.#mirror, head);
    if (note !== null) await this.#takeCheckpoint(this.#mirror, key, note, head);
    if (shown && !isKept) await this.#keepShown(this.#mirror, shown);
    await this.#auditMirror(this.#mirror, key, before, audit);
    if (this.#options.obeysWithholding && this.#hasWithheld) await this.#obey(key);
  }

  #openMirror(key: OperatorKeys): Promise<Mirror> {
    return Mirror.open(this.#options.folder.mirror, key, { keepsWithheld: !this.#options.obeysWithholding });
  }

  /** Opening a mirror takes from it what is withheld. */
  async #obey(key: OperatorKeys): Promise<void> {
    await this.close();
    this.#mirror = await this.#openMirror(key);
    this.#hasWithheld = false;
  }

  async close(): Promise<void> {
    await this.#mirror?.close();
    this.#mirror = null;
  }

  async #get<S extends TSchema>(schema: S, path: string, query: Query = {}): Promise<Static<S>> {
    return this.#http.get(schema, path, query);
  }

  /** The operator keys: the chain that the service shows, which must lead on from the one that is known. */
  async #operators(): Promise<OperatorKeys> {
    const pinned = await this.#watch.operatorKey();
    const answer = await this.#get(wire.OperatorPublicKey, "/log/operator-key");
    try {
      return await this.#watch.refreshedOperators(answer);
    } catch (error) {
      if (!(error instanceof ClientError) || !error.evidence) throw error;
      const { evidence, detail } = error;
      const known = await this.#watch.knownOperators();
      // A head that nobody has signed, or one of a known key, is a lie of its own.
      if (evidence.shown && !(await isOfOthers(evidence.shown, answer.operators, pinned, known)))
        throw await this.#convicted(known, detail, evidence);
      const { public_key: shownKey, operators: shownOperators } = answer;
      const shown = fingerprintOf(shownKey);
      const isKnown = evidence.operators.some(({ key_id }) => key_id === shown);
      const said = `The service shows the operator key ${shown ?? "(none)"}; pinned is ${pinned.fingerprint}.`;
      throw await this.#caught("operator-key", isKnown ? detail : said, { ...evidence, shownKey, shownOperators });
    }
  }

  /** What speaks against a signed head by what is mirrored, without a question to the log. */
  #objection(head: TreeHead): string | undefined {
    if (isFromFuture(head)) return fromFuture(head);
    const ours = this.#mirror?.head(head.tree_size);
    if (ours && ours.root_hash !== head.root_hash) return twoHeads(head.tree_size);
    return this.#mirror ? behindEnd(this.#mirror, head.tree_size) : undefined;
  }

  /** The newest head: signed by the key of its size, not smaller than the last, and going on from it. */
  async #newest(): Promise<TreeHead | undefined> {
    this.#touchedAt = performance.now();
    try {
      return await this.#watch.newest();
    } catch (error) {
      if (!(error instanceof ClientError) || !error.evidence) throw error;
      const isProven = error.code === "stale-answer";
      throw await this.#convicted(await this.#watch.knownOperators(), error.detail, error.evidence, isProven);
    }
  }

  /** A log that grows is not silent while a round takes hours to copy or to compare what it has. */
  async #stayInTouch(mirror: Mirror): Promise<void> {
    if (performance.now() - this.#touchedAt < TOUCH_MS) return;
    await this.#newest();
    mirror.operators = await this.#watch.operators();
  }

  /**
   * Which kind of lie the client's evidence shows; where two signed heads of one size can be had, with both. A head that is
   * signed and of the same tree, but smaller than the last one, is no lie.
   * @param isProven whether the service has proven that the tree of a smaller head is the beginning of that of the last one
   */
  async #convicted(
    key: OperatorKeys,
    detail: string,
    evidence: Evidence,
    isProven = false,
  ): Promise<Misbehaviour | OlderHead> {
    const { known, shown } = evidence;
    if (!shown) return this.#caught("missing-head", detail, evidence);
    if (!(await verifyTreeHead(shown, key)))
      return this.#caught((await isOfRetired(shown, key)) ? "retired-key" : "bad-signature", detail, evidence);
    if (isFromFuture(shown)) return this.#caught("future-head", detail, evidence);
    if (this.#mirror) await this.#expectEnd(this.#mirror, shown.tree_size, evidence);
    const ours = this.#mirror?.head(shown.tree_size);
    if (ours && ours.root_hash !== shown.root_hash)
      return this.#caught("fork", twoHeads(shown.tree_size), { ...evidence, known: ours });
    if ((ours || isProven) && known && shown.tree_size < known.tree_size)
      return new OlderHead(await this.#caught("shrunken", detail, evidence));
    // A signed head of the service for the known size convicts the operator without any proof.
    const theirs = known && (await this.#headOf(known.tree_size));
    if (theirs && theirs.root_hash !== known.root_hash && (await verifyTreeHead(theirs, key)))
      return this.#caught("fork", twoHeads(known.tree_size), { ...evidence, shown: theirs });
    return this.#caught("missing-proof", detail, evidence);
  }

  /** The head that the service now gives for a size; null if it gives none. */
  async #headOf(size: number): Promise<TreeHead | null> {
    return this.#get(wire.TreeHead, `/log/sth/${size}`).catch((error: unknown) => {
      if (error instanceof ClientError) return null;
      throw error;
    });
  }

  /** Mirrors every entry up to a head, page by page. */
  async #follow(mirror: Mirror, head: TreeHead): Promise<void> {
    const { onProgress } = this.#options;
    while (mirror.size < head.tree_size) {
      await this.#stayInTouch(mirror);
      const start = mirror.size;
      const end = Math.min(start + HEADS, head.tree_size);
      const heads = await this.#heads(start + 1, end - start);
      while (mirror.size < end) {
        const entries = await this.#page(mirror.size, end, head);
        await this.#take(mirror, entries, heads);
        await this.#tellWatched();
        onProgress?.("entries", mirror.size, head.tree_size);
      }
    }
    const ours = mirror.head(head.tree_size);
    if (ours?.root_hash === head.root_hash) return;
    if (!ours) throw await this.#caught("missing-head", "The newest size has a head, and has none.", { shown: head });
    throw await this.#caught("fork", twoHeads(head.tree_size), { known: ours, shown: head });
  }

  async #take(mirror: Mirror, entries: readonly Entry[], heads: ReadonlyMap<number, TreeHead>): Promise<void> {
    const from = mirror.size;
    let previous = mirror.entry(from - 1) ?? null;
    let signed = mirror.head(from) !== undefined;
    const received: { entry: Entry; head: TreeHead | null }[] = [];
    for (const [i, entry] of entries.entries()) {
      const size = from + i + 1;
      const head = heads.get(size) ?? null;
      // Imported history has no heads and may skip ids. Entries that were appended later must have heads and
      // consecutive ids.
      if (signed && !head)
        throw await this.#caught("missing-head", `There is a head of size ${size - 1}, but none of ${size}.`, {});
      if (signed && previous && entry.id !== previous.id + 1)
        throw await this.#caught("broken-chain", `Entry ${entry.id} comes after entry ${previous.id}.`, {
          entry,
          other: previous,
          shown: head,
        });
      if (head && isFromFuture(head)) throw await this.#caught("future-head", fromFuture(head), { shown: head });
      if (isCut(entry)) await this.#expectWithheld(entry);
      signed = head !== null;
      previous = entry;
      received.push({ entry, head });
    }
    const refusal = await mirror.add(received);
    this.#hasWithheld ||= entries.some(({ event_type }) => event_type === PAYLOAD_WITHHELD);
    if (!refusal) return;
    const { kind, detail, ...parts } = refusal;
    throw await this.#caught(kind, `Entry ${refusal.entry.id}: ${detail}`, parts);
  }

  /** Entries from leaf `from` on, at least one and none beyond `to`; at most as many as a page has. */
  async #page(from: number, to: number, head: TreeHead | null): Promise<Entry[]> {
    for (const perPage of PAGE_SIZES) {
      const query = { page: Math.floor(from / perPage) + 1, per_page: perPage };
      let entries: Entry[];
      try {
        entries = (await this.#get(wire.EntryPage, "/log", query)).entries as Entry[];
      } catch (error) {
        if (isOversized(error) && perPage > 1) continue;
        throw error;
      }
      if (entries.length > perPage) throw malformed(`A page of ${perPage} entries has ${entries.length}.`);
      const wanted = entries.slice(from % perPage, (from % perPage) + to - from);
      if (wanted.length) return wanted;
      break;
    }
    throw await this.#caught("missing-entry", `The log does not list leaf ${from}, which its head covers.`, {
      shown: head,
    });
  }

  /** The first heads of `count` sizes. */
  async #heads(from: number, count: number): Promise<ReadonlyMap<number, TreeHead>> {
    const { heads } = await this.#get(wire.TreeHeads, "/log/heads", { from, limit: count });
    const bySize = new Map(heads.map((head) => [head.tree_size, head] as const));
    const isAsked = ({ tree_size }: TreeHead) => tree_size >= from && tree_size < from + count;
    if (bySize.size !== heads.length || !heads.every(isAsked)) throw malformed("The heads are not those asked for.");
    return bySize;
  }

  /** The newest checkpoint as it is served; null if there is none. */
  async #checkpoint(): Promise<string | null> {
    const response = await fetchText(`${this.#http.server}/api/v1/log/checkpoint`, this.#options.fetch);
    if (!response) return null;
    const note = await response.text();
    // The error page of a gateway is no evidence against the log.
    if (!response.ok || !isCheckpoint(note))
      throw malformed("The service answers /api/v1/log/checkpoint with something else than a checkpoint.");
    return note;
  }

  /** If a checkpoint is signed, the mirror must agree, and the head that is asked for next be as large. */
  async #expectAtLeast(mirror: Mirror, key: OperatorKeys, note: string): Promise<void> {
    const checkpoint = await verifyCheckpoint(note, key, note.slice(0, note.indexOf("\n")));
    if (!checkpoint) return;
    this.#http.hasSeen(checkpoint.treeSize);
    await this.#compareCheckpoint(mirror, checkpoint, { checkpoint: note });
  }

  /** A checkpoint must say of its size what the mirror says of it. A size of imported history has no head to compare with. */
  async #compareCheckpoint(
    mirror: Mirror,
    { treeSize, rootHash }: Checkpoint,
    evidence: Partial<MonitorEvidence>,
  ): Promise<void> {
    await this.#expectEnd(mirror, treeSize, evidence);
    const known = mirror.head(treeSize);
    if (known && known.root_hash !== rootHash)
      throw await this.#caught("fork", `Checkpoint and tree head of size ${treeSize} have different roots.`, {
        ...evidence,
        known,
      });
  }

  /** Keeps the checkpoint at `/tlog/`. @returns false if the mirror does not have its entries yet */
  async #keepShown(mirror: Mirror, shown: ServedCheckpoint): Promise<boolean> {
    await this.#expectEnd(mirror, shown.treeSize, { checkpoint: shown.note });
    const fault = await mirror.checkpoints.keep(shown);
    if (fault) throw await this.#caught("fork", fault, { checkpoint: shown.note });
    return shown.treeSize <= mirror.size;
  }

  /** Keeps a checkpoint whose entries were taken. */
  async #takeCheckpoint(mirror: Mirror, key: OperatorKeys, note: string, head: TreeHead | undefined): Promise<void> {
    const checkpoint = await verifyCheckpoint(note, key, note.slice(0, note.indexOf("\n")));
    const evidence = { checkpoint: note, shown: head ?? null };
    if (!checkpoint)
      throw await this.#caught("bad-signature", "The checkpoint is not signed by the pinned operator key.", evidence);
    await this.#compareCheckpoint(mirror, checkpoint, evidence);
    const { treeSize } = checkpoint;
    if (treeSize > mirror.size) {
      const detail = `The checkpoint has ${treeSize} leaves, the head that came later has less.`;
      throw new OlderHead(await this.#caught("shrunken", detail, evidence));
    }
    if (mirror.head(treeSize)) mirror.keepCheckpoint(note, treeSize);
  }

  /** A log that has ended has no larger head or checkpoint. */
  async #expectEnd(mirror: Mirror, treeSize: number, evidence: Partial<MonitorEvidence>): Promise<void> {
    const detail = behindEnd(mirror, treeSize);
    if (detail === undefined) return;
    const [known, entry] = [mirror.head(mirror.size) ?? null, mirror.end];
    throw await this.#caught("after-freeze", detail, { known, ...evidence, entry });
  }

  /** Compares mirrored entries, all or one page of them, with what is served for them now. */
  async #auditMirror(mirror: Mirror, key: OperatorKeys, size: number, all: boolean): Promise<void> {
    if (!size) return;
    const [step] = PAGE_SIZES;
    const pages = Math.ceil(size / step);
    const first = all ? 0 : randomInt(pages);
    const end = all ? size : Math.min(size, (first + 1) * step);
    for (let from = first * step; from < end; ) {
      await this.#stayInTouch(mirror);
      const entries = await this.#page(from, end, null);
      const heads = await this.#heads(from + 1, entries.length);
      for (const [i, entry] of entries.entries()) await this.#compare(mirror, key, from + i, entry, heads);
      from += entries.length;
      if (all) this.#options.onProgress?.("audit", from, end);
    }
  }

  async #compare(
    mirror: Mirror,
    key: OperatorKeys,
    leafIndex: number,
    entry: Entry,
    heads: ReadonlyMap<number, TreeHead>,
  ): Promise<void> {
    const ours = mirror.entry(leafIndex)!;
    const known = mirror.head(leafIndex + 1) ?? null;
    const shown = heads.get(leafIndex + 1) ?? null;
    if (content(entry) !== content(ours) && !(await this.#isWithheldSince(entry, ours)))
      throw await this.#caught("changed-entry", `Entry ${ours.id} is not served as it was mirrored.`, {
        ...(known ? { known } : {}),
        shown,
        entry,
        other: ours,
      });
    if (!known) return;
    const evidence = { known, shown };
    if (!shown) throw await this.#caught("missing-head", `The head of size ${leafIndex + 1} is gone.`, evidence);
    const { signature, root_hash, timestamp } = shown;
    if (signature === known.signature && root_hash === known.root_hash && timestamp === known.timestamp) return;
    if (!(await verifyTreeHead(shown, key)))
      throw await this.#caught("bad-signature", `The head of size ${leafIndex + 1} is not signed any more.`, evidence);
    if (root_hash !== known.root_hash) throw await this.#caught("fork", twoHeads(leafIndex + 1), evidence);
  }

  /** Whether an entry is not served as it was mirrored because its payload is withheld since, and for no other reason. */
  async #isWithheldSince(entry: Entry, ours: Entry): Promise<boolean> {
    if (!isCut(entry) || isCut(ours)) return false;
    await this.#expectWithheld(entry);
    if (entry.payload && canonicalJson(entry.payload) !== canonicalJson(withoutName(ours.payload))) return false;
    const { withheld_by: _, ...rest } = entry;
    return content({ ...rest, payload: ours.payload }) === content(ours);
  }

  /** A payload that is not served whole must be withheld by an entry: a log that only refuses misbehaves. */
  async #expectWithheld(entry: Entry): Promise<void> {
    try {
      await this.#watch.checkContent(entry);
    } catch (error) {
      if (!(error instanceof ClientError) || error.code !== "log-misbehaved") throw error;
      throw await this.#caught("bad-entry", error.detail, { entry });
    }
  }

  /** Tells of watched keys, rotations and the end in entries that are on disk, then notes how far it came. */
  async #tellWatched(): Promise<void> {
    const { folder, watched, onWatched, onRotation, onFrozen } = this.#options;
    const mirror = this.#mirror!;
    const from = folder.told;
    if (from === mirror.size) return;
    for (let index = from; index < mirror.size; index++) {
      const entry = mirror.entry(index)!;
      if (mirror.operators.chain.some(({ rotation }) => rotation?.entry_id === entry.id)) await onRotation?.(entry);
      if (entry.event_type === LOG_FROZEN) await onFrozen?.(entry);
      for (const fingerprint of namedIn(entry, watched ?? new Set())) await onWatched?.(entry, fingerprint);
    }
    folder.told = mirror.size;
  }

  /** The error for a misbehaviour of the log, with the known and the received data. */
  async #caught(kind: Misconduct, detail: string, parts: Partial<MonitorEvidence>): Promise<Misbehaviour> {
    const { pem } = await this.#watch.operatorKey();
    const nothing = { shown: null, proof: null, entry: null, other: null, shownKey: null, shownOperators: null };
    return new Misbehaviour(kind, detail, {
      operatorKey: pem,
      operators: this.#mirror?.operators.chain ?? [],
      checkpoint: null,
      known: await this.newestHead(),
      ...nothing,
      ...parts,
    });
  }
}

/**
 * Whether a head's timestamp is in the future, by this machine's clock. Until that time, such a head would look new,
 * and a log that has stalled would not be noticed. A timestamp that cannot be read counts as one.
 */
const isFromFuture = ({ timestamp }: TreeHead): boolean => !(Date.parse(timestamp) <= Date.now() + CLOCK_SKEW_MS);

/** Whether an operator key of the log has signed the head, though another speaks for its size. */
async function isOfRetired(head: TreeHead, { chain }: OperatorKeys): Promise<boolean> {
  const term = chain.find(({ key_id }) => key_id === head.key_id);
  return term !== undefined && verifyTreeHead(head, parsePublicKey(term.public_key));
}

/** Whether a head is signed by a key of a chain that has the pinned key, and by none that was known before. */
async function isOfOthers(head: TreeHead, chain: unknown, pinned: PublicKey, known: OperatorKeys): Promise<boolean> {
  const told = await OperatorKeys.verify(chain, pinned).catch(() => null);
  return told !== null && (await verifyTreeHead(head, told)) && !(await verifyTreeHead(head, known));
}

function fingerprintOf(pem: string): string | undefined {
  try {
    return parsePublicKey(pem).fingerprint;
  } catch {
    // No key at all is another one, too.
    return undefined;
  }
}

const fromFuture = ({ tree_size, timestamp }: TreeHead): string =>
  `The head of size ${tree_size} is of ${timestamp}, more than ${CLOCK_SKEW_MS / 60_000} minutes ahead of this machine's clock.`;

/** What is wrong with a size behind the end of the log; undefined if that is not known. */
function behindEnd({ size, end }: Mirror, treeSize: number): string | undefined {
  if (!end || treeSize <= size) return undefined;
  return `Entry ${end.id} froze the log at size ${size}, and a signed head has ${treeSize}.`;
}

const twoHeads = (size: number) => `The operator has signed two different tree heads of size ${size}.`;

/**
 * The part of an entry that must never change: everything except its anchoring proof, which may be added later and
 * grow.
 */
function content(entry: Entry): string {
  const { id, timestamp, event_type, payload, previous_hash, entry_hash, chain_version = 1, entry_hashes } = entry;
  return canonicalJson({
    ...{ id, timestamp, event_type, payload, previous_hash, entry_hash, chain_version },
    entry_hashes: entry_hashes.map(({ algorithm, digest_hex, is_primary }) => [algorithm, digest_hex, is_primary]),
  });
}

const malformed = (detail: string) => new ClientError("malformed-answer", detail);
