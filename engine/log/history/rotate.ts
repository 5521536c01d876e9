/**
 * Hands a log from its operator key to the next one. The old key says up to which size it speaks, the new key shows that
 * it is held, and the entry that records both gets the first head of the new key.
 *
 * If we crash here: entry, head, derived rows and the log's meta row are one transaction. So either the old key is the
 * operator's, or the new one is. A statement that was signed and not recorded is nowhere but in this process's memory.
 */

import { CairnlogError } from "../../base/error.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import { type Signer, signatures } from "../../crypto/signer/operator-key.js";
import { eventOf } from "../../verify/events/kinds.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { type RotationStatement, rotationMessage } from "../../verify/tree/operators.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { REBUILD, STORED_NODES } from "../check/end.js";
import { logFrozen } from "../operator/entries.js";
import { OPERATOR_ROTATION } from "../operator/operators.js";
import { SIGNING_VERSION } from "../read/frontier.js";
import { ClockGuard, clockFile, formatTimestamp } from "../state/clock.js";
import { finishEntry } from "../state/entry.js";
import type { Projection } from "../state/projection.js";
import { type HistoryWriter, openHistory } from "./history.js";

/** A key that can sign. */
type KeyHolder = Signer & { readonly public: ServerKey };

interface RotateOptions {
  /** Directory of the log, which no process may have open to write. */
  readonly path: string;
  /** The operator key of the log. */
  readonly from: KeyHolder;
  /** The key that follows it. */
  readonly to: KeyHolder;
  /** The projection with which the log is opened. */
  readonly projection: Projection;
  /** As in `LogOptions`. */
  readonly minFreeBytes?: number;
}

/** A rotation that is on disk. */
export interface Rotated extends RotationStatement {
  readonly log_entry_id: number;
  readonly entry_hash: string;
  /** The first head of the new key. */
  readonly sth: TreeHead;
}

/**
 * Rotates the operator key, and resolves when that is on disk. From then on the log opens with the new key alone.
 * @throws CairnlogError `wrong-operator` if `from` is not the operator key; `in-use` if another process writes the log;
 *   `invalid-input` for a key that is or was an operator key of this log; `wrong-key-status` for one that is registered
 *   and ends; `precondition-failed` for a log without a head; `frozen`; `signer-unavailable`, `storage-failed`
 */
export async function rotateOperatorKey({ path, from, to, ...options }: RotateOptions): Promise<Rotated> {
  const writer = await openHistory({ ...options, path, operatorKey: from.public.pem });
  try {
    if (writer.frozen) throw logFrozen(writer.frozen);
    writer.operators.checkCurrent(from.fingerprint);
    writer.operators.checkNext(to.fingerprint);
    checkRegistered(writer, to.fingerprint);
    const { end } = writer;
    if (!end)
      throw new CairnlogError(
        "precondition-failed",
        "The log has no head yet, so nothing is signed that a new key could take over. Begin a new log with the new key.",
      );
    const { size: tree_size, lastId, lastHash } = writer;
    const root_hash = end.rootHash;
    if (end.head.tree_version === SIGNING_VERSION && end.head.root_hash !== root_hash)
      throw new CairnlogError("corrupt-log", `${STORED_NODES} ${REBUILD}`);
    const statement = { old_fingerprint: from.fingerprint, fingerprint: to.fingerprint, tree_size, root_hash };
    const payload = {
      ...statement,
      old_public_key: from.public.pem,
      public_key: to.public.pem,
      key_algorithm: to.public.algorithm,
      old_key_signature: await signed(from, statement),
      new_key_signature: await signed(to, statement),
    };
    const event = eventOf(OPERATOR_ROTATION, payload);
    const clock = new ClockGuard(clockFile(path));
    clock.begin(end.micros);
    if (clock.refusal) throw clock.refusal;
    const timestamp = formatTimestamp(Math.max(clock.now(), end.micros));
    const draft = { id: lastId + 1, timestamp, event_type: event.event_type };
    const { text, entryHash } = finishEntry(
      { ...draft, canonicalPayload: canonicalJson(event.payload) },
      lastHash,
      null,
    );
    await writer.seal({ entry: Buffer.from(text, "utf8"), otsProof: null, head: null }, to);
    return { ...statement, log_entry_id: draft.id, entry_hash: entryHash, sth: writer.end!.head };
  } finally {
    await writer.close();
  }
}

async function signed(key: KeyHolder, statement: RotationStatement): Promise<string> {
  try {
    const signature = await signatures(key, key.public, [rotationMessage(statement)]);
    return signature.toString("base64");
  } catch (cause) {
    throw new CairnlogError("signer-unavailable", `The key ${key.fingerprint} cannot sign. Nothing was changed.`, {
      cause,
    });
  }
}

/** An operator key does not end by itself: nobody could then say which key speaks for the log. */
function checkRegistered(writer: HistoryWriter, fingerprint: string): void {
  const row = writer.row("keys", fingerprint);
  if (!row || (row.status === "active" && row.expires_at === null)) return;
  throw new CairnlogError(
    "wrong-key-status",
    `The key ${fingerprint} is registered in this log and is ${row.status}${row.expires_at === null ? "" : `, until ${row.expires_at}`}. Give a key that does not end.`,
  );
}
