/**
 * Reads the log from the files that `cairnlog publish --entries` has put beside this page. The key of the checkpoints and that of
 * the operator are pinned on the first visit; every entry is compared with the tree of a checkpoint that the first has signed, and
 * every checkpoint with the newest that this browser knows.
 */
import Type, { type Static } from "typebox";
import { toHex } from "../../../../engine/verify/bytes/encoding.js";
import {
  CairnlogError,
  type Checkpoint,
  type Entry,
  formatVkey,
  leafHash,
  type OperatorKeys,
  type PublicKey,
  parsePublicKey,
  parseVkey,
  type TreeHead,
  verifyTreeHead,
} from "../../../../engine/verify/index.js";
import { Http } from "../../../client/base/http.js";
import { ClientError, type LogEnd } from "../../../client/index.js";
import { deviation } from "../../../client/log/expected.js";
import { newRotations } from "../../../client/log/operators.js";
import { FULL_TILE, ServedTiles } from "../../../client/log/served.js";
import { keyFrom } from "../../../client/static/key.js";
import { type PublishedEntry, StaticLog } from "../../../client/static/log.js";
import { termOf } from "../../../client/static/run.js";
import { raise, type ShownAlarm } from "../alarm.js";
import { recall, remember } from "../memory.js";
import { learnNames } from "../names.js";
import type { Proven, Source } from "../source.js";
import { timelyFetch } from "../timely.js";
import { operators, signedLogName } from "../watching.js";

/** What this browser knows of the log, from its last look. */
const Known = Type.Object({
  vkey: Type.String(),
  /** PEM. */
  operator_key: Type.String(),
  tree_size: Type.Integer({ minimum: 0 }),
  root_hash: Type.String(),
  checkpoint: Type.String(),
});
type Known = Static<typeof Known>;

/** The log at a checkpoint. */
interface Opened {
  readonly log: StaticLog;
  readonly vkey: string;
  /** Null of an empty log. */
  readonly operators: OperatorKeys | null;
  /** The head of the same size; null if the log is empty, or ends with imported history, which has none. */
  readonly head: TreeHead | null;
}

/** What is replaced must be asked for again: not every server says so. */
const REPLACED = /\/(?:checkpoint|vkey|log\/operator-key)$/;
const files = new Http(new URL(".", window.location.href).href, (input, init) =>
  timelyFetch(input, REPLACED.test(String(input)) ? { ...init, cache: "no-cache" } : init),
);
const served = new ServedTiles(files);

let opened: Opened | null = null;
/** Bundles whose names of keys were learnt. */
const learnt = new Set<number>();

/** The log at its newest checkpoint, compared with what this browser knows. @throws ClientError */
async function open(): Promise<Opened> {
  const note = await served.checkpoint();
  if (opened?.log.note === note) return opened;
  const known = recall("published", Known);
  const shown = (await served.text("/vkey")).trimEnd();
  try {
    // A publisher replaces the key before the checkpoint.
    const logs = [...new Set([known?.vkey ?? shown, shown])].map((text) => ({ key: parseVkey(text), url: null }));
    const log = await StaticLog.open(files, { logs, witnesses: [], groups: [], quorum: null });
    const vkey = formatVkey(log.verdict.log);
    // The keys of an empty log are not published: nothing is pinned yet.
    if (!log.size && !known) return { log, vkey, operators: null, head: null };
    const keys = await signers(log, known);
    if (known && vkey !== known.vkey) handedOver(known, vkey, keys, log.note);
    if (known) await goesOn(log, known);
    const head = await newestHead(log, keys);
    const { treeSize: tree_size, rootHash: root_hash } = log.verdict.checkpoint;
    const operator_key = keys.current.pem;
    remember("published", { vkey, operator_key, tree_size, root_hash, checkpoint: log.note } satisfies Known);
    opened = { log, vkey, operators: keys, head };
    return opened;
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    throw new ClientError("malformed-answer", `The files here are not those of a log. ${error.message}`, {
      cause: error,
    });
  }
}

/** The keys that sign the heads; the pinned one must be one of them, and the log must have each rotation since. */
async function signers(log: StaticLog, known: Known | undefined): Promise<OperatorKeys> {
  const shown = await log.operators();
  if (!known) return shown;
  const pinned = parsePublicKey(known.operator_key);
  if (shown.indexOf(pinned.fingerprint) < 0)
    throw otherKey(known, "operator key", log.note, {
      pinned: pinned.fingerprint,
      shown: shown.current.fingerprint,
    });
  for (const { leafIndex, expected } of newRotations(shown, null)) {
    const isNew = leafIndex >= known.tree_size && leafIndex < log.size;
    if (isNew && deviation((await log.at(leafIndex)).entry, expected) !== undefined)
      throw caught("The log has no entry for a rotation of its operator key.", known, log.note);
  }
  return shown;
}

/** Another key of the checkpoints is believed if it is the operator key that follows the pinned one. */
function handedOver(known: Known, vkey: string, keys: OperatorKeys, note: string): void {
  const [before, now] = [parseVkey(known.vkey), parseVkey(vkey)];
  const place = (key: PublicKey | null) => (key ? keys.indexOf(key.fingerprint) : -1);
  if (before.name !== now.name || place(before.key) < 0 || place(now.key) < place(before.key))
    throw otherKey(known, `key of its checkpoints, ${vkey},`, note);
}

/** The log must have all that this browser has seen in it. */
async function goesOn(log: StaticLog, known: Known): Promise<void> {
  if (log.size < known.tree_size)
    throw new ClientError(
      "stale-answer",
      `The checkpoint here has ${log.size} entries, and this browser has verified one of ${known.tree_size} before.`,
    );
  if ((await log.rootAt(known.tree_size)) !== known.root_hash)
    throw caught(
      `The log has another tree of ${known.tree_size} entries than the one that it had signed before: it was rewritten.`,
      known,
      log.note,
    );
}

async function newestHead(log: StaticLog, keys: OperatorKeys): Promise<TreeHead | null> {
  const at = log.size - 1;
  const { head } = (await log.bundle(Math.floor(at / FULL_TILE)))[at % FULL_TILE]!;
  if (head && !(await verifyTreeHead(head, keys)))
    throw caught(
      `The operator has not signed the head of ${log.size} entries that is here.`,
      undefined,
      log.note,
      head,
    );
  return head;
}

/** Raises the alarm, with what shows the misbehaviour. @returns the error */
function caught(detail: string, known: Known | undefined, shown: string, head: TreeHead | null = null): ClientError {
  raise({ detail, code: "log-misbehaved", evidence: { known: known ?? null, shown, head } });
  return new ClientError("log-misbehaved", detail);
}

function otherKey(known: Known, what: string, shown: string, keys: ShownAlarm["keys"] = null): ClientError {
  const detail = `The files here show another ${what} than the one that this browser pinned, and nothing shows that one led to the other.`;
  raise({ detail, code: "operator-key-mismatch", keys, evidence: { known, shown } });
  return new ClientError("operator-key-mismatch", detail);
}

/** The log as it was seen last. @throws ClientError */
const current = async (): Promise<Opened> => opened ?? open();

async function proven({ log }: Opened, { entry, leafIndex }: PublishedEntry): Promise<Proven> {
  await learn(log, leafIndex);
  const { treeSize: tree_size, rootHash: root_hash } = log.verdict.checkpoint;
  const audit_path = (await log.inclusion(leafIndex)).map(toHex);
  return {
    entry,
    proof: { leaf_index: leafIndex, entry_hash: entry.entry_hash, audit_path },
    head: { tree_size, root_hash, tree_version: "rfc6962" },
  };
}

/** Learns the names of keys that a bundle has, which was read for an entry. @throws ClientError */
async function learn(log: StaticLog, leafIndex: number): Promise<void> {
  const index = Math.floor(leafIndex / FULL_TILE);
  if (learnt.has(index)) return;
  const named = (await log.bundle(index)).flatMap(({ entry: { payload } }) =>
    typeof payload?.fingerprint === "string" && typeof payload.pseudonym === "string"
      ? [[payload.fingerprint, payload.pseudonym]]
      : [],
  );
  learnNames(Object.fromEntries(named));
  if ((index + 1) * FULL_TILE <= log.size) learnt.add(index);
}

async function entryAt(id: number): Promise<Proven> {
  const now = await current();
  try {
    return await proven(now, await now.log.entry(id));
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== "not-found" || error.status) throw error;
    throw new ClientError(error.code, error.detail, { status: 404 });
  }
}

/** Entries about a hash, at these leaves. @throws ClientError */
async function about(log: StaticLog, hash: string, leaves: readonly number[]): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const { entry, leafIndex } of log.about(hash, leaves)) {
    await learn(log, leafIndex);
    entries.push(entry);
  }
  return entries;
}

export const fileSource: Source = {
  kind: "files",
  async look() {
    const now = await open();
    operators.value = now.operators;
    signedLogName.value = now.log.verdict.checkpoint.origin;
    return now.head;
  },
  accused: async () => {},
  async entries(_, from, to) {
    const { log } = await current();
    const entries: Entry[] = [];
    for await (const { entry, leafIndex } of log.entries(from)) {
      if (leafIndex >= to) break;
      await learn(log, leafIndex);
      entries.push(entry);
    }
    return entries.reverse();
  },
  async matching({ search = "", ...others }, { skip, count }) {
    if (termOf(search) === undefined || Object.keys(others).length)
      throw new ClientError(
        "invalid-input",
        "Published files have an index of whole hashes alone. Words, tags, types and beginnings of hashes need the service.",
      );
    const { log } = await current();
    const leaves = await log.leavesAbout(search);
    const end = Math.max(0, leaves.length - skip);
    const entries = await about(log, search, leaves.slice(Math.max(0, end - count), end));
    return { entries: entries.reverse(), total: leaves.length };
  },
  entry: entryAt,
  opened: entryAt,
  async neighbours({ entry, proof: { leaf_index: at } }) {
    const { log } = await current();
    const previous = at > 0 ? (await log.at(at - 1)).entry : null;
    const next = at + 1 < log.size ? (await log.at(at + 1)).entry : null;
    for (const [before, after] of [
      [previous, entry],
      [entry, next],
    ] as const)
      if (after && after.previous_hash !== (before?.entry_hash ?? null))
        throw caught(`Entry ${after.id} does not follow the entry before it.`, undefined, log.note);
    return { previous, next };
  },
  async newestId() {
    const { log } = await current();
    return log.size ? (await log.at(log.size - 1)).entry.id : undefined;
  },
  async naming(hash, page, count) {
    const { log } = await current();
    const leaves = await log.leavesAbout(hash);
    const entries = await about(log, hash, leaves.slice((page - 1) * count, page * count));
    return { entries, total: leaves.length };
  },
  async key(fingerprint) {
    const { log } = await current();
    const key = keyFrom(fingerprint, await about(log, fingerprint, await log.leavesAbout(fingerprint)));
    if (key) return key;
    throw new ClientError("not-found", `The index has no entry by which the key ${fingerprint} came into the log.`, {
      status: 404,
    });
  },
  async operatorKey() {
    const keys = (await current()).operators;
    if (keys) return keys.current;
    throw new ClientError("not-found", "The log is empty, and its operator key is not published yet.");
  },
  /** These files have no proof in the tree of the heads. `judged` has the one by the checkpoint in its place. */
  async evidence({ entry, proof: { leaf_index } }) {
    const { head, operators: keys } = await current();
    if (!head) throw new ClientError("not-found", "The log ends with imported history, which no head covers here.");
    const { tree_size, tree_version, root_hash } = head;
    const { entry_hash } = entry;
    return {
      proof: {
        ...{ leaf_index, tree_size, tree_version, root_hash, entry_hash, audit_path: [], sth: head },
        leaf_hash: leafHash(entry_hash, tree_version),
      },
      tree_head: head,
      ...(keys && keys.chain.length > 1 && { operators: keys.chain }),
    };
  },
  judged(check, { proof: { leaf_index }, head: { tree_size } }) {
    if (check.name === "inclusion")
      return {
        ...{ name: check.name, ok: true },
        detail: `The entry is leaf ${leaf_index} of the tree of ${tree_size} leaves in the checkpoint that the log signed.`,
      };
    if (check.name !== "tree-head" || !check.ok) return check;
    return { ...check, detail: `${check.detail} It is that of the newest entry here.` };
  },
  async proofFile({ entry, proof: { leaf_index: leafIndex } }) {
    return (await current()).log.proofFile({ entry, leafIndex });
  },
};

/** The checkpoint that was verified last, and the key that signed it. @throws ClientError */
export async function checkpointHere(): Promise<{ vkey: string; note: string; checkpoint: Checkpoint }> {
  const { log, vkey } = await current();
  return { vkey, note: log.note, checkpoint: log.verdict.checkpoint };
}

/** How the log ended, by its newest entry; null if it may grow. @throws ClientError */
export const endHere = async (): Promise<LogEnd | null> => (await current()).log.end();
