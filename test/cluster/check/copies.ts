/** Invariant 10: every server and every node has the same, as the checker sees it and as the commands of the product do. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Node } from "../rig/node.js";
import type { Rig } from "../rig/rig.js";
import { DATABASE } from "../servers/cluster.js";
import type { PostgresServer } from "../servers/server.js";

const PATIENCE_MS = 120_000;
const QUERY_MS = 60_000;

/** A digest of all columns of some rows. */
const digestOf = (rows: string, order: string): string =>
  `(SELECT count(*) || ':' || encode(sha256(coalesce(string_agg(sha256(convert_to(r::text, 'UTF8')), ''::bytea ORDER BY ${order}), ''::bytea)), 'hex')
    FROM ${rows} r)`;

/** What is compared. Of records that were compared before, the hashes are enough until the end: they cover the rest. */
const contents = (after: number): Readonly<Record<string, string>> => ({
  records: digestOf("(SELECT sequence, hash FROM cairnlog.record)", "sequence"),
  "bytes of the newest records": digestOf(`(SELECT * FROM cairnlog.record WHERE sequence > ${after})`, "sequence"),
  "private rows of records": digestOf("cairnlog.private_change", "sequence"),
  "private rows": digestOf("cairnlog.private_row", "tbl, key"),
  "end of the journal": digestOf("(SELECT epoch, sequence, hash, size FROM cairnlog.lead)", "sequence"),
});

/** Every standby has what its primary has, as soon as it has replayed it. @param after records compared whole before */
export async function compareServers({ cluster: { primary, standbys } }: Rig, after: number): Promise<string[]> {
  const wanted = contents(after);
  const sql = `SELECT ${Object.values(wanted).join(", ")}`;
  const read = async (server: PostgresServer) => (await server.query(sql, DATABASE, QUERY_MS))[0]!;
  const problems: string[] = [];
  for (const standby of standbys) {
    let differing: string[] = [];
    for (const until = Date.now() + PATIENCE_MS; ; await sleep(100)) {
      const [there, here] = await Promise.all([read(primary), read(standby)]);
      differing = Object.keys(wanted).filter((_, i) => there[i] !== here[i]);
      if (!differing.length || Date.now() > until) break;
    }
    for (const what of differing)
      problems.push(`invariant 10: ${standby.name} and ${primary.name} do not have the same ${what}`);
  }
  return problems;
}

/**
 * Asks the commands about nodes that run: the journal on all servers, and one monitor that goes from node to node.
 * @returns problems, and the number of records that each server was found to have each time
 */
export async function askRunning(rig: Rig): Promise<{ readonly problems: string[]; readonly records: number[] }> {
  const problems: string[] = [];
  const found: number[] = [];
  const state = mkdtempSync(join(rig.cluster.folder, "monitor-"));
  const key = join(state, "operator.pub.pem");
  writeFileSync(key, rig.operatorKey);
  for (const node of rig.nodes) {
    const report = await ask(rig, node, ["replicate", "check", "--json"], problems);
    const servers = (report?.servers ?? []) as { address: string; role: string; records: number }[];
    const roles = servers.map(({ role }) => role).sort();
    if (report && (report.sound !== true || roles.join() !== "primary,standby,standby"))
      problems.push(`invariant 10: ${node.name} finds servers ${roles.join(", ")}`);
    found.push(...servers.map(({ records }) => records));
    // What one node has shown, the next one must go on from.
    const args = ["monitor", node.url, "--state", state, "--operator-key", key, "--once", "--audit", "--json"];
    await rig.command(node, args).catch((error: Error) => problems.push(`${node.name}: ${error.message}`));
  }
  return { problems, records: found };
}

/** Runs `fsck` on each data directory, which must have so many entries. The nodes must have ended. */
export async function askStopped(rig: Rig, entries: number): Promise<string[]> {
  const problems: string[] = [];
  for (const node of rig.nodes) {
    const key = node.environment.SERVICE_OPERATOR_KEY!;
    const report = await ask(rig, node, ["fsck", "--json", "--data", node.dataDir, "--operator-key", key], problems);
    if (report && (report.ok !== true || report.entries !== entries))
      problems.push(`invariant 10: fsck finds ${report.entries} entries of ${entries} in ${node.name}`);
  }
  return problems;
}

// biome-ignore lint/suspicious/noExplicitAny: reports of every shape
async function ask(rig: Rig, node: Node, args: readonly string[], problems: string[]): Promise<any> {
  try {
    return JSON.parse(await rig.command(node, args));
  } catch (error) {
    problems.push(`invariant 10: ${node.name}: ${(error as Error).message}`);
    return null;
  }
}
