/** Searches the files of the servers for what was refused: not a byte of it may be in the log of writes or in a table. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Batch } from "#cairnlog/engine/store/batch.js";
import type { Rig } from "../rig/rig.js";
import type { Proposal } from "../rig/tap.js";
import type { PostgresServer } from "../servers/server.js";

const BATCH_AT = 115 + 32 + 4;
/** Bytes of a signature that are searched for: too many to be there by chance, and few enough to be on one page. */
const NEEDLE = 24;
/** Records that are searched for at most; the newest. */
const MOST = 24;

/** A part of a record that no other record has: of the signature of its first head. */
export function needleOf({ body }: Pick<Proposal, "body">): Buffer | undefined {
  const packed = body.subarray(BATCH_AT);
  return packed.length ? Buffer.from(new Batch(0, packed).head(0)!.signature.subarray(0, NEEDLE)) : undefined;
}

/** Proposals that were refused each time, and so never were in the journal. */
export const refusedOf = (proposals: Iterable<Proposal>): Proposal[] =>
  [...proposals].filter(({ sent, refused }) => refused === sent);

/** Files below the data directories in which any of the needles is found, with the number of the needle. */
export function findBytes(
  servers: readonly PostgresServer[],
  needles: readonly Buffer[],
): { file: string; needle: number }[] {
  const found: { file: string; needle: number }[] = [];
  for (const { dataDir } of servers)
    for (const part of ["pg_wal", "base"])
      for (const file of filesBelow(join(dataDir, part))) {
        const bytes = readFileSync(file);
        for (const [needle, wanted] of needles.entries()) if (bytes.includes(wanted)) found.push({ file, needle });
      }
  return found;
}

/** Invariant 6, of all that this process has seen to be refused. */
export async function searchRefused({ cluster, tap }: Rig): Promise<string[]> {
  // What is in memory only is not searched.
  await cluster.primary.query("CHECKPOINT");
  const needles = refusedOf(tap.proposals.values())
    .slice(-MOST)
    .flatMap((proposal) => needleOf(proposal) ?? []);
  const accepted = tap.newestAccepted && needleOf(tap.newestAccepted);
  const found = findBytes(cluster.servers, accepted ? [...needles, accepted] : needles);
  const problems = found
    .filter(({ needle }) => needle < needles.length)
    .map(({ file }) => `invariant 6: a head that was refused is in ${file}`);
  // The search must find what is there.
  for (const part of accepted ? ["pg_wal", "base"] : [])
    if (!found.some(({ file, needle }) => needle === needles.length && file.includes(`/${part}/`)))
      problems.push(`The newest head is not found in ${part}: the search is of no use`);
  return problems;
}

function* filesBelow(folder: string): Iterable<string> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) yield* filesBelow(path);
    else yield path;
  }
}
