/**
 * Checks batches that another writer made and a journal has decided. The journal guarantees that a batch was appended,
 * but not that it is right. So these are checked: content, links, order and digests of every entry, the root of every
 * head, and one signature of each batch. The serialisation is checked too, because entries are served as they are
 * stored.
 */

import { CairnlogError } from "../../base/error.js";
import { verifySync } from "../../crypto/keys/signatures.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import { Batch } from "../../store/schema/batch.js";
import { HASH } from "../../store/schema/schema.js";
import { treeHeadMessage } from "../../verify/tree/treehead.js";
import type { Operators } from "../operator/operators.js";
import { headOf } from "../read/reader.js";
import type { CheckedEntry, HistoryReader, Predecessor } from "./entry.js";
import { checkHead } from "./head.js";

/**
 * The entries of a packed batch, each checked against the previous one.
 * @throws CairnlogError for the first entry that is wrong
 */
export function entriesOf(
  firstIndex: number,
  packed: Buffer,
  previous: Predecessor,
  reader: HistoryReader,
): { readonly batch: Batch; readonly entries: readonly CheckedEntry[] } {
  const batch = new Batch(firstIndex, packed);
  if (!batch.count) throw new CairnlogError("corrupt-log", "its batch is empty.");
  const entries: CheckedEntry[] = [];
  let areSpelledSo = true;
  for (let i = 0; i < batch.count; i++) {
    const bytes = batch.entry(i);
    const entry = reader.read(bytes, entries[i - 1] ?? previous, firstIndex + i, null);
    areSpelledSo &&= entry.json.equals(bytes);
    entries.push(entry);
  }
  const digests = Buffer.from(entries.map(({ entryHash }) => entryHash).join(""), "hex");
  // Nothing else in a batch with heads has a second form, and one without heads is refused below.
  if (!areSpelledSo || !digests.equals(batch.digests))
    throw new CairnlogError("corrupt-log", "its batch is not in the form in which batches are written.");
  return { batch, entries };
}

/**
 * Checks every head of a batch, and one signature.
 * @param roots of each size that the batch makes, 32 bytes each
 * @param notBefore timestamp of the previous head, microseconds
 * @returns timestamp of the newest head, microseconds
 * @throws CairnlogError for the first head that is wrong
 */
export function checkHeads(
  { batch, entries }: { readonly batch: Batch; readonly entries: readonly CheckedEntry[] },
  roots: Uint8Array,
  notBefore: number,
  operators: Operators,
): number {
  const expected = Buffer.from(roots.buffer, roots.byteOffset, roots.length);
  let time = notBefore;
  let known: ServerKey | null = null;
  for (const [i, { micros }] of entries.entries()) {
    const size = batch.firstIndex + i + 1;
    const key = operators.keyAt(size);
    const packed = batch.head(i);
    const [from, to] = [HASH * i, HASH * (i + 1)];
    // The heads of a batch mostly have one time, so most of what there is to check is the same as of the one before.
    const isLike = packed?.timestamp === time && key === known && micros <= time;
    if (isLike && expected.compare(packed.root, 0, HASH, from, to) === 0) continue;
    const head = headOf(batch, i, size);
    if (!head) throw new CairnlogError("corrupt-log", "its entries have no tree heads.");
    checkHead(head, { size, root: expected.toString("hex", from, to), notBefore: Math.max(time, micros) }, key);
    time = packed!.timestamp;
    known = key;
  }
  const size = batch.firstIndex + batch.count;
  const newest = headOf(batch, batch.count - 1, size)!;
  const message = treeHeadMessage(newest.root_hash, size, newest.timestamp);
  if (!verifySync(operators.keyAt(size), message, Buffer.from(newest.signature, "base64")))
    throw new CairnlogError("invalid-signature", "the signature of its newest tree head does not verify.");
  return time;
}
