/** A replicated log on this machine, for people to try: it stays until Ctrl-C, and says what happens to it. */
import { setTimeout as sleep } from "node:timers/promises";
import { DIST } from "../reliability/planted.js";
import type { Node } from "./rig/node.js";
import { Rig } from "./rig/rig.js";

const WATCH_MS = 250;
/** Milliseconds after which a node that ended is started again: time to look at the other one. */
const RESTART_MS = 5_000;

/** Runs until `signal`. @param port of the first node; the second has the next */
export async function demo(port: number, signal: AbortSignal): Promise<void> {
  console.log("Starting three PostgreSQL servers and two nodes …");
  const rig = await Rig.start({ dist: DIST, ports: [port, port + 1] });
  try {
    console.log(await greeting(rig));
    await watch(rig, signal);
  } finally {
    console.log("\nEnding and deleting everything.");
    await rig.remove();
  }
}

async function greeting(rig: Rig): Promise<string> {
  const leader = await rig.leader();
  const follower = rig.nodes.find((node) => node !== leader)!;
  const { cluster } = rig;
  const both = [follower, ...rig.nodes.filter((node) => node !== follower)].map(({ url }) => url).join();
  const psql = `psql -h 127.0.0.1 -p ${cluster.primary.port} -U postgres cairnlog`;
  const servers = cluster.servers.map(
    (server) =>
      `  ${server.name}  127.0.0.1:${server.port}  ${server === cluster.primary ? "primary" : "standby"}, pid ${server.pid}`,
  );
  return `
PostgreSQL
${servers.join("\n")}
Nodes
${rig.nodes.map((node) => `  ${describe(node)}  ${node === leader ? "leads" : "follows"}`).join("\n")}

Attest, at the node that follows; the command goes on at the leader by itself, because you name it, too:
  npx cairnlog keygen --out me.pem
  npx cairnlog attest README.md --key me.pem --server ${both}
Kill the leader, and attest again at the other one:
  kill -9 ${leader.pid}
Kill the primary; a standby is promoted:
  kill -9 ${cluster.primary.pid}
Hand the lead over in order:
  SERVICE_NODE_URL=${follower.url} SERVICE_REPLICATION='${cluster.url()}' npx cairnlog promote
Compare everything with the journal, and look into it:
  SERVICE_REPLICATION='${cluster.url()}' npx cairnlog replicate check --data ${follower.dataDir}
  SERVICE_REPLICATION='${cluster.url()}' npx cairnlog replicate status
  ${psql} -c 'SELECT epoch, url, sequence, size FROM cairnlog.lead'

Ctrl-C ends it and deletes ${cluster.folder}.
`;
}

const describe = (node: Node): string => `${node.name}  ${node.url}  pid ${node.pid}`;

/** Tells who leads, starts nodes again, and does to PostgreSQL what Patroni or an operator would. */
async function watch(rig: Rig, signal: AbortSignal): Promise<void> {
  const { cluster } = rig;
  const ended = new Map<Node, number>();
  let known: Node | undefined = await rig.leader();
  for (; !signal.aborted; await sleep(WATCH_MS)) {
    if (!cluster.primary.isRunning) {
      const old = cluster.primary;
      console.log(`${old.name} has ended`);
      await cluster.promote(await cluster.newest());
      console.log(`${cluster.primary.name} is the primary now`);
      await cluster.rejoin(old);
      console.log(`${old.name} is back as a standby`);
    }
    for (const node of rig.nodes) {
      if (node.isRunning) continue;
      if (!ended.has(node))
        console.log(`${node.name} has ended (${node.ended}), and is started again in ${RESTART_MS / 1000} s`);
      const since = ended.get(node) ?? Date.now();
      ended.set(node, since);
      if (Date.now() < since + RESTART_MS) continue;
      ended.delete(node);
      await node.start();
      console.log(`started: ${describe(node)}`);
    }
    for (const node of rig.nodes) {
      if (node === known || !node.isRunning || !(await node.leads())) continue;
      known = node;
      console.log(`${node.name} leads`);
    }
  }
}
