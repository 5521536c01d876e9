/** Searches the files of the servers for what was refused: not a byte of it may be in the log of writes or in a table. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Batch } from "#cairnlog/engine/store/schema/batch.js";
import type { Rig } from "../rig/rig.js";
import type { Proposal } from "../rig/tap.js";
import type { PostgresServer } from "../servers/server.js";

const BATCH_AT = 115 + 32 + 4;
/** Bytes of a signature that are searched for: too many to be there by chance. */
const NEEDLE = 24;
/** Records that are searched for at most; the newest. */
const MOST = 24;

/**
 * Parts of a record that no other record has: both ends of the signature of its first head. Only one of them can be
 * divided between two pages.
 */
export function needlesOf({ body }: Pick<Proposal, "body">): Buffer[] {
  const packed = body.subarray(BATCH_AT);
  if (!packed.length) return [];
  const { signature } = new Batch(0, packed).head(0)!;
  return [signature.subarray(0, NEEDLE), signature.subarray(-NEEDLE)].map((part) => Buffer.from(part));
}

/** Proposals that were refused each time, and so never were in the journal. */
export const refusedOf = (proposals: ReadonlyMap<string, Proposal>): [string, Proposal][] =>
  [...proposals].filter(([, { sent, refused }]) => refused === sent);

/** Files below the data directories in which any of the needles is found, with the number of the needle. */
export function findBytes(
  servers: readonly PostgresServer[],
  needles: readonly Buffer[],
): { file: string; needle: number }[] {
  const found: { file: string; needle: number }[] = [];
  for (const { dataDir } of servers)
    for (const part of ["pg_wal", "base"])
      for (const file of filesBelow(join(dataDir, part))) {
        const bytes = readIfThere(file);
        for (const [needle, wanted] of needles.entries()) if (bytes.includes(wanted)) found.push({ file, needle });
      }
  return found;
}

/**
 * Invariant 6, of what was refused lately: PostgreSQL does not keep its log of writes for ever.
 * @param searched hashes of records that were searched for before; those that are searched for now are added
 */
export async function searchRefused({ cluster, tap }: Rig, searched = new Set<string>()): Promise<string[]> {
  const fresh = refusedOf(tap.proposals)
    .filter(([hash]) => !searched.has(hash))
    .slice(-MOST);
  if (!fresh.length) return [];
  for (const [hash] of fresh) searched.add(hash);
  // What is in memory only is not searched.
  await cluster.primary.query("CHECKPOINT");
  const needles = fresh.flatMap(([, proposal]) => needlesOf(proposal));
  const accepted = tap.newestAccepted ? needlesOf(tap.newestAccepted) : [];
  const found = findBytes(cluster.servers, [...needles, ...accepted]);
  const problems = found
    .filter(({ needle }) => needle < needles.length)
    .map(({ file }) => `invariant 6: a head that was refused is in ${file}`);
  // The search must find what is there.
  for (const part of accepted.length ? ["pg_wal", "base"] : [])
    if (!found.some(({ file, needle }) => needle >= needles.length && file.includes(`/${part}/`)))
      problems.push(`The newest head is not found in ${part}: the search is of no use`);
  return problems;
}

function* filesBelow(folder: string): Iterable<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path);
    else yield path;
  }
}

/** The bytes of a file; none if the server has removed or renamed it meanwhile. */
function readIfThere(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
}
