/** Nodes that have more than the journal, as if an old PostgreSQL had been put back: none of them may lead. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Rig } from "../rig/rig.js";
import { DATABASE } from "../servers/cluster.js";
import { LEASE_MS } from "./faults/fault.js";
import { sequenceOf } from "./replica.js";

/** Takes the newest record out of the journal. */
const ROLL_BACK = `
BEGIN;
DELETE FROM cairnlog.record WHERE sequence = (SELECT sequence FROM cairnlog.lead);
DELETE FROM cairnlog.private_change WHERE sequence = (SELECT sequence FROM cairnlog.lead);
UPDATE cairnlog.lead SET holder = NULL, beat = beat + 1, (sequence, hash, size) =
  (SELECT r.sequence, r.hash, lead.size FROM cairnlog.record r WHERE r.sequence = lead.sequence - 1);
UPDATE cairnlog.lead SET acked = least(acked, sequence);
COMMIT`;

/** Invariant 8. The nodes must have ended. Afterwards the cluster is of no use. */
export async function tryAhead({ cluster, nodes }: Rig): Promise<string[]> {
  await cluster.primary.query(ROLL_BACK, DATABASE);
  const [row] = await cluster.primary.query("SELECT sequence FROM cairnlog.lead", DATABASE);
  const sequences = await Promise.all(nodes.map(sequenceOf));
  // One that had not applied the newest record yet may lead.
  const ahead = nodes.filter((_, i) => sequences[i]! > Number(row![0]));
  if (!ahead.length) return ["No node is ahead of the journal: nothing was tried"];
  for (const node of nodes) node.launch();
  // Each listens, or has ended because of what it found.
  for (const node of nodes) while (node.isRunning && !(await node.ask("/livez"))) await sleep(50);
  const problems: string[] = [];
  for (const until = Date.now() + 4 * LEASE_MS; Date.now() < until && !problems.length; await sleep(100))
    for (const node of ahead)
      if (await node.leads()) problems.push(`invariant 8: ${node.name} is ahead of the journal, and leads`);
  await Promise.all(nodes.map((node) => node.kill()));
  return problems;
}
