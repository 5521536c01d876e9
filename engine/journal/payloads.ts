/**
 * Payloads in the batch of a record. A record's hash must stay what it is when a payload is withheld and taken from the journal. So
 * it covers the hash of each payload and not its bytes, and a record that has lost some has their hashes behind its batch:
 * for each u32 number of the entry in the batch, 32-byte hash.
 */
import { hash } from "node:crypto";
import { Batch } from "../store/schema/batch.js";
import { HASH } from "../store/schema/schema.js";

const BEFORE = Buffer.from(',"payload":');
const BEHIND = Buffer.from(',"previous_hash":');
/** In the place of a payload that an entry has lost, or of one that has lost its name, as `spellWithheld` writes it. */
const LOST = /^(?:null|\{.*\}),"withheld_by":\d+$/s;
const NUMBER_BYTES = 4;
const LOSS_BYTES = NUMBER_BYTES + HASH;

/** Hashes of the payloads that a batch has lost, by the numbers of their entries. */
export type Losses = ReadonlyMap<number, Uint8Array>;
const NO_LOSSES: Losses = new Map();

const sha256 = (bytes: Uint8Array): Buffer => hash("sha256", bytes, "buffer");

/**
 * Where the payload lies in an entry. Quotes in texts are escaped, so the first of these names is the member's own; behind the
 * payload there are hashes.
 */
function payloadIn(entry: Buffer): { readonly from: number; readonly to: number } | undefined {
  const at = entry.indexOf(BEFORE);
  const [from, to] = [at + BEFORE.length, entry.lastIndexOf(BEHIND)];
  return at < 0 || to < from ? undefined : { from, to };
}

/** SHA-256 of a packed batch with the hash of each payload in its place. Bytes that are no batch are hashed as they are. */
export function digestOfBatch(packed: Buffer, losses: Losses = NO_LOSSES): Buffer {
  const batch = batchOf(packed);
  if (!batch) return sha256(packed);
  return sha256(
    batch.packedWith((i) => {
      const entry = batch.entry(i);
      const payload = payloadIn(entry);
      if (!payload) return undefined;
      const digest = losses.get(i) ?? sha256(entry.subarray(payload.from, payload.to));
      return Buffer.concat([entry.subarray(0, payload.from), digest, entry.subarray(payload.to)]);
    }),
  );
}

function batchOf(packed: Buffer): Batch | undefined {
  try {
    return new Batch(0, packed);
  } catch {
    return undefined;
  }
}

/** A batch without the payloads of some entries, and the hashes of all that it has lost. @param withheld as they are served */
export function withoutPayloads(
  packed: Buffer,
  losses: Losses,
  withheld: ReadonlyMap<number, Buffer>,
): { readonly packed: Buffer; readonly losses: Losses } {
  const batch = new Batch(0, packed);
  const lost = new Map(losses);
  const shorter = batch.packedWith((i) => {
    const other = withheld.get(i);
    if (!other || lost.has(i)) return undefined;
    const entry = batch.entry(i);
    const payload = payloadIn(entry);
    if (!payload || isLost(entry)) return undefined;
    lost.set(i, sha256(entry.subarray(payload.from, payload.to)));
    return other;
  });
  return { packed: shorter, losses: lost };
}

function isLost(entry: Buffer): boolean {
  const payload = payloadIn(entry);
  return payload !== undefined && LOST.test(entry.toString("latin1", payload.from, payload.to));
}

/** The bytes behind a batch. */
export const packLosses = (losses: Losses): Buffer =>
  Buffer.concat(
    [...losses].map(([i, digest]) => {
      const number = Buffer.alloc(NUMBER_BYTES);
      number.writeUInt32BE(i);
      return Buffer.concat([number, digest]);
    }),
  );

/** Inverse of `packLosses`; undefined for bytes that are none, or name an entry that has not lost its payload. */
export function readLosses(bytes: Buffer, packed: Buffer): Losses | undefined {
  if (!bytes.length) return NO_LOSSES;
  const batch = batchOf(packed);
  if (!batch || bytes.length % LOSS_BYTES) return undefined;
  const losses = new Map<number, Uint8Array>();
  for (let at = 0; at < bytes.length; at += LOSS_BYTES) {
    const i = bytes.readUInt32BE(at);
    if (i >= batch.count || losses.has(i) || !isLost(batch.entry(i))) return undefined;
    losses.set(i, bytes.subarray(at + NUMBER_BYTES, at + LOSS_BYTES));
  }
  return losses;
}
