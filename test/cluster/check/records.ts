/**
 * The journal in PostgreSQL, as somebody reads it who trusts nobody: by psql, with hashes computed here, from what
 * `engine/journal/record.ts` says of the layout of a record.
 */
import { createHash } from "node:crypto";
import { Batch } from "#cairnlog/engine/store/schema/batch.js";
import type { TreeHead } from "#cairnlog/engine/verify/index.js";
import { DATABASE } from "../servers/cluster.js";
import type { PostgresServer } from "../servers/server.js";

const HASH = 32;
const NUMBER = 6;
const SEQUENCE_AT = 1;
const EPOCH_AT = SEQUENCE_AT + NUMBER;
const FIRST_INDEX_AT = EPOCH_AT + NUMBER;
const PREVIOUS_AT = FIRST_INDEX_AT + NUMBER;
const BATCH_DIGEST_AT = PREVIOUS_AT + HASH;
const HEAD = BATCH_DIGEST_AT + 2 * HASH;
const BATCH_AT = HEAD + HASH + 4;

export const sha256 = (bytes: Uint8Array): Buffer => createHash("sha256").update(bytes).digest();

/** What is kept of a leaf. */
export interface Leaf {
  readonly entryHash: string;
  /** The head of the tree that ends with it. */
  readonly head: Pick<TreeHead, "root_hash" | "signature"> & { readonly micros: number };
  /** What it says, SHA-256 of the text. */
  readonly text: string;
  /** The document that it attests, if any. */
  readonly document: string | undefined;
}

export class Records {
  /** Hash of each record, hex; the first has the number 1. */
  readonly hashes: string[] = [];
  readonly leaves: Leaf[] = [];
  /** SHA-256 of each packed batch, hex, by its first leaf. */
  readonly batches = new Map<number, string>();
  /** Leaves whose payload was taken from the journal. */
  readonly withheld = new Set<number>();
  /** Of each leaf, the number of its record. */
  readonly recordOf: number[] = [];
  /** Leaf of each attested document. */
  readonly documents = new Map<string, number>();
  epoch = 0;
  #newestTime = 0;

  /** Reads the records that were not read yet. @returns a sentence for everything that is wrong with them */
  async read(server: PostgresServer): Promise<string[]> {
    const rows = await server.query(
      `SELECT sequence, encode(hash, 'hex'), epoch, first_index, encode(body, 'hex') FROM cairnlog.record
        WHERE sequence > ${this.hashes.length} ORDER BY sequence`,
      DATABASE,
      60_000,
    );
    return rows.flatMap(([sequence, hash, epoch, firstIndex, body]) =>
      this.#add(Number(sequence), hash!, Number(epoch), Number(firstIndex), Buffer.from(body!, "hex")).map(
        (problem) => `${problem} (record ${sequence} in PostgreSQL)`,
      ),
    );
  }

  #add(sequence: number, hash: string, epoch: number, firstIndex: number, body: Buffer): string[] {
    const problems: string[] = [];
    const require = (holds: boolean, problem: string) => {
      if (!holds) problems.push(problem);
    };
    require(sequence === this.hashes.length + 1, "invariant 3: the sequence has a gap");
    const previous = this.hashes.at(-1) ?? "00".repeat(HASH);
    require(body.toString("hex", PREVIOUS_AT, BATCH_DIGEST_AT) ===
      previous, "invariant 3: the chain of hashes is broken");
    require(sha256(body.subarray(0, HEAD)).toString("hex") === hash, "invariant 3: the hash is not that of the record");
    require(body.toString("hex", HEAD, HEAD + HASH) === hash, "invariant 3: the record says another hash");
    require(body.readUIntBE(SEQUENCE_AT, NUMBER) === sequence, "invariant 3: the record says another sequence");
    require(body.readUIntBE(EPOCH_AT, NUMBER) === epoch, "invariant 5: the record says another epoch");
    require(epoch >= this.epoch, `invariant 5: epoch ${epoch} writes after epoch ${this.epoch}`);
    require(body.readUIntBE(FIRST_INDEX_AT, NUMBER) === firstIndex, "the record says another first entry");
    require(firstIndex === this.leaves.length, `it begins at leaf ${firstIndex}, not ${this.leaves.length}`);
    const end = BATCH_AT + body.readUInt32BE(BATCH_AT - 4);
    const batch = body.subarray(BATCH_AT, end);
    const lost = lostIn(body.subarray(end));
    for (const i of lost.keys()) this.withheld.add(firstIndex + i);
    const digest = batch.length ? digestOf(new Batch(firstIndex, batch), lost) : Buffer.alloc(HASH);
    require(digest.equals(
      body.subarray(BATCH_DIGEST_AT, BATCH_DIGEST_AT + HASH),
    ), "invariant 3: the batch is another one");
    this.hashes.push(hash);
    this.epoch = Math.max(this.epoch, epoch);
    if (batch.length) {
      this.batches.set(firstIndex, sha256(batch).toString("hex"));
      problems.push(...this.#addBatch(new Batch(firstIndex, batch)));
    }
    return problems;
  }

  #addBatch(batch: Batch): string[] {
    const problems: string[] = [];
    for (const leaf of leavesOf(batch)) {
      const index = this.leaves.push(leaf) - 1;
      this.recordOf.push(this.hashes.length);
      const { micros } = leaf.head;
      if (micros < this.#newestTime)
        problems.push(`invariant 9: the head of size ${index + 1} is older than the one before`);
      this.#newestTime = Math.max(this.#newestTime, micros);
      const { document } = leaf;
      if (document === undefined) continue;
      if (this.documents.has(document))
        problems.push(`${document} is on the log twice: leaves ${this.documents.get(document)} and ${index}`);
      this.documents.set(document, index);
    }
    return problems;
  }
}

/** The hashes of payloads that a batch has lost, by the numbers of their entries. */
function lostIn(bytes: Buffer): Map<number, Buffer> {
  const lost = new Map<number, Buffer>();
  for (let at = 0; at < bytes.length; at += 4 + HASH)
    lost.set(bytes.readUInt32BE(at), bytes.subarray(at + 4, at + 4 + HASH));
  return lost;
}

/** SHA-256 of a batch in which the hash of each payload stands in its place. */
const digestOf = (batch: Batch, lost: ReadonlyMap<number, Buffer>): Buffer =>
  sha256(
    batch.packedWith((i) => {
      const [, before, payload, behind] = /^(.*?,"payload":)(.*)(,"previous_hash":.*)$/s.exec(batch.text(i))!;
      return Buffer.concat([Buffer.from(before!), lost.get(i) ?? sha256(Buffer.from(payload!)), Buffer.from(behind!)]);
    }),
  );

/** What is compared of the entries and heads of a batch. */
export function* leavesOf(batch: Batch): Iterable<Leaf> {
  for (let i = 0; i < batch.count; i++) {
    const text = batch.text(i);
    const { root, timestamp, signature } = batch.head(i)!;
    yield {
      entryHash: batch.digest(i),
      head: {
        root_hash: Buffer.from(root).toString("hex"),
        signature: Buffer.from(signature).toString("base64"),
        micros: timestamp,
      },
      text: sha256(Buffer.from(text, "utf8")).toString("base64"),
      document: /"document_hash":"(sha256:[0-9a-f]{64})"/.exec(text)?.[1],
    };
  }
}
