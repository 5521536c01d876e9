/** Functions that change the files of a closed log, and heads that its operator could have signed. */
import { type Database, open } from "lmdb";
import type { OperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { formatTimestamp } from "#cairnlog/engine/log/state/clock.js";
import {
  Batch,
  type BatchHeads,
  type HeadRecord,
  packBatch,
  storedBatch,
} from "#cairnlog/engine/store/schema/batch.js";
import { treeHeadMessage } from "#cairnlog/engine/verify/tree/treehead.js";
import { MAP_SIZE, testOperator } from "./harness.js";

export type Bytes = Database<Buffer, number | number[]>;

/** Opens one table of a closed log for changes, as bytes. */
export async function tamper(path: string, table: string, change: (db: Bytes) => Promise<unknown>): Promise<void> {
  const env = open({ path, maxDbs: 50, mapSize: MAP_SIZE });
  await change(env.openDB({ name: table, encoding: "binary" }));
  await env.close();
}

/** Replaces the first occurrence of `from` in the batch at leaf `first`, as it was packed, by the same number of bytes. */
export const replaceInBatch =
  (first: number, from: string | Buffer, to: string | Buffer) =>
  async (db: Bytes): Promise<void> => {
    const row = Buffer.from(new Batch(first, db.get(first)!).packed);
    const at = row.indexOf(from);
    if (at < 0) throw new Error(`the batch at leaf ${first} does not hold ${from}`);
    row.set(Buffer.from(to), at);
    await db.put(first, storedBatch(row));
  };

/** All heads of a batch; null for imported history. */
export function headsOf(batch: Batch): BatchHeads | null {
  const info = batch.headInfo;
  return info && { ...info, heads: Array.from({ length: batch.count }, (_, i) => batch.head(i)!) };
}

/** Replaces the heads of the batch at leaf `first` by the result of `change`, which may be none. */
export async function replaceHeads(
  path: string,
  first: number,
  change: (heads: HeadRecord[]) => readonly HeadRecord[] | null | Promise<readonly HeadRecord[]>,
): Promise<void> {
  await tamper(path, "batches", async (db) => {
    const batch = new Batch(first, db.get(first)!);
    const made = headsOf(batch)!;
    const heads = await change([...made.heads]);
    const packed: BatchHeads | null = heads && { ...made, heads };
    const entries = Array.from({ length: batch.count }, (_, i) => batch.entry(i));
    await db.put(first, packBatch(entries, batch.digests, packed));
  });
}

/** The head of a root with this timestamp, microseconds, as `operator` would have signed it. */
export async function signedAt(
  root: Uint8Array,
  size: number,
  timestamp: number,
  operator: Pick<OperatorKey, "sign"> = testOperator,
): Promise<HeadRecord> {
  const message = treeHeadMessage(Buffer.from(root).toString("hex"), size, formatTimestamp(timestamp));
  const [signature] = await operator.sign([message]);
  return { root, timestamp, signature: Buffer.from(signature!) };
}
