/** The data directory of a node, compared with the journal: it must be made of the journal's records, and of no others. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type RecordedChange, rowLine } from "#cairnlog/engine/journal/rows.js";
import { PRIVATE_TABLES, type TableName } from "#cairnlog/engine/store/schema/schema.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import type { Node } from "../rig/node.js";
import { DATABASE } from "../servers/cluster.js";
import type { PostgresServer } from "../servers/server.js";
import { type Leaf, leavesOf, type Records, sha256 } from "./records.js";

/** Milliseconds until a node must have applied the newest record. */
const PATIENCE_MS = 120_000;
/** Sentences shown of one kind. */
const SHOWN = 3;
/** Tables that are not derived from entries, and that anybody may see: PostgreSQL keeps their rows with the records. */
const PUBLIC: ReadonlySet<string> = new Set(["anchors", "anchorWork", "anchorTotals", "signedHeads", "leader"]);

/** The sequence that a node has applied. */
export async function sequenceOf(node: Node): Promise<number> {
  return withStore(node, (store) => store.position().sequence);
}

/** What PostgreSQL has at one moment. */
export interface JournalState {
  readonly records: Records;
  /** The private rows, as lines, that the record `sequence` and those before it have made. There may be newer records. */
  readonly rows: { readonly sequence: number; readonly lines: readonly string[] };
}

/**
 * Compares entries and heads from leaf `from` on, the position, and all private rows with what PostgreSQL has.
 *
 * Something may always be recorded meanwhile: a takeover, or a request whose client waits no more. So PostgreSQL is read while a
 * view of the node stays as it is, and rows are compared only if both have applied the same record.
 */
export async function compareNode(
  node: Pick<Node, "name" | "dataDir">,
  read: () => Promise<JournalState>,
  from: number,
): Promise<string[]> {
  for (const until = Date.now() + PATIENCE_MS; ; await sleep(50)) {
    const { problems, areRowsCompared } = await withStore(node, async (store) =>
      differences(store, await read(), from),
    );
    if (!areRowsCompared && !problems.length && Date.now() < until) continue;
    if (!areRowsCompared) problems.push("its private rows could not be compared");
    return problems.map((problem) => `${node.name}: ${problem}`);
  }
}

function differences(store: Store, { records, rows }: JournalState, from: number) {
  const { sequence, epoch, hash } = store.position();
  const known = records.hashes[sequence - 1];
  const problems = differingLeaves(store, records, from);
  if (known !== Buffer.from(hash).toString("hex"))
    problems.push(`invariant 4: its record ${sequence} is not the journal's`);
  if (epoch > records.epoch) problems.push(`invariant 5: it is in epoch ${epoch}, the journal in ${records.epoch}`);
  const areRowsCompared = sequence === rows.sequence;
  if (areRowsCompared) problems.push(...differingRows(store, rows.lines));
  return { problems, areRowsCompared };
}

async function withStore<T>({ dataDir }: Pick<Node, "dataDir">, look: (store: Store) => T | Promise<T>): Promise<T> {
  const store = openStore({ path: join(dataDir, "log"), readOnly: true });
  try {
    store.pin();
    return await look(store);
  } finally {
    await store.close();
  }
}

function differingLeaves(store: Store, { leaves, batches, withheld }: Records, from: number): string[] {
  const problems: string[] = [];
  let index = from;
  for (let batch = store.batchAt(index); batch; batch = store.batchAt(index)) {
    let at = batch.firstIndex;
    // A node has what the journal has lost, until its next start.
    const hasLost = Array.from({ length: batch.count }, (_, i) => withheld.has(at + i)).includes(true);
    if (!hasLost && batches.get(at) !== sha256(batch.packed).toString("hex"))
      problems.push(`invariant 4: the batch at leaf ${at} is not the journal's, to the byte`);
    for (const leaf of leavesOf(batch)) {
      if (at >= from && spelled(leaf, withheld.has(at)) !== spelled(leaves[at], withheld.has(at)))
        problems.push(
          leaves[at]
            ? `invariant 1: leaf ${at} or its head is not the journal's`
            : `invariant 4: leaf ${at} is not in the journal`,
        );
      at++;
    }
    index = at;
  }
  return problems.slice(0, SHOWN);
}

/** A leaf as it is compared: without what it says, if that is withheld. */
const spelled = (leaf: Leaf | undefined, isWithheld: boolean): string =>
  JSON.stringify(leaf && isWithheld ? { entryHash: leaf.entryHash, head: leaf.head } : leaf);

/** The lines of the rows that the journal keeps apart because they are private. */
function differingRows(store: Store, privateRows: readonly string[]): string[] {
  const there = new Set<string>();
  for (const table of PRIVATE_TABLES.filter((table) => !PUBLIC.has(table)))
    for (const { key, row } of store.range(table as TableName))
      there.add(rowLine({ table, key, row } as RecordedChange));
  const journal = new Set(privateRows);
  const lacking = privateRows.filter((line) => !there.has(line)).map((line) => `it lacks the private row ${line}`);
  const more = [...there]
    .filter((line) => !journal.has(line))
    .map((line) => `its private row is not in PostgreSQL: ${line}`);
  return [...lacking.slice(0, SHOWN), ...more.slice(0, SHOWN)];
}

/** The private rows in PostgreSQL, and the record that made the newest of them what they are. */
export async function privateRowsOf(server: PostgresServer): Promise<JournalState["rows"]> {
  const rows = await server.query(
    `SELECT lead.sequence, encode(convert_to(row, 'UTF8'), 'hex') FROM cairnlog.lead LEFT JOIN cairnlog.private_row ON true`,
    DATABASE,
  );
  const lines = rows.flatMap(([, hex]) => (hex ? [Buffer.from(hex, "hex").toString("utf8")] : []));
  return { sequence: Number(rows[0]![0]), lines };
}
