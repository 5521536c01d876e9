/** Faults of the network: ways between nodes and servers on which nothing passes, or whose connections break off. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Link } from "../../servers/link.js";
import { briefly, type Fault, LEASE_MS, overLease, type Scene } from "./fault.js";

/** The ways from a node to the servers of a role. */
function ways({ rig }: Scene, node: string, role: "primary" | "standbys" | "all"): Link[] {
  const { cluster } = rig;
  const servers = { primary: [cluster.primary], standbys: cluster.standbys, all: cluster.servers }[role];
  return rig.links(new RegExp(`^${node}-(?:${servers.map(({ name }) => name).join("|")})$`));
}

/** Cuts ways for a while, that may be shorter or longer than a lease. */
async function cutFor(scene: Scene, cut: readonly Link[]): Promise<void> {
  for (const link of cut) link.cut();
  await (scene.random.chance(0.3) ? briefly(scene) : overLease(scene));
  for (const link of cut) link.heal();
  await briefly(scene);
}

export const WAY_FAULTS: readonly Fault[] = [
  {
    name: "the leader is cut off from the primary",
    kind: "way",
    run: (scene) => cutFor(scene, ways(scene, scene.leader.name, "primary")),
  },
  {
    name: "the leader is cut off from the standbys",
    kind: "way",
    run: (scene) => cutFor(scene, ways(scene, scene.leader.name, "standbys")),
  },
  {
    name: "the leader is cut off from all servers",
    kind: "way",
    run: (scene) => cutFor(scene, ways(scene, scene.leader.name, "all")),
  },
  {
    name: "the follower is cut off from all servers",
    kind: "way",
    run: (scene) => cutFor(scene, ways(scene, scene.follower.name, "all")),
  },
  {
    name: "both nodes are cut off from the primary",
    kind: "way",
    run: (scene) => cutFor(scene, ways(scene, "n\\d", "primary")),
  },
  {
    name: "both nodes are cut off from the standbys",
    kind: "way",
    run: (scene) => cutFor(scene, ways(scene, "n\\d", "standbys")),
  },
  {
    name: "an append of the leader arrives when another node leads",
    kind: "way",
    run: async (scene) => {
      const { tap } = scene.rig;
      const cut = ways(scene, scene.leader.name, "primary");
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, LEASE_MS);
        tap.onProposal = () => {
          for (const link of cut) link.cut();
          clearTimeout(late);
          resolve();
        };
      });
      tap.onProposal = null;
      // A node does not wait longer than 5 s for PostgreSQL: it would send the append again.
      for (const until = Date.now() + 2 * LEASE_MS; Date.now() < until && !(await scene.follower.leads()); )
        await sleep(50);
      for (const link of cut) link.heal();
      await briefly(scene);
    },
  },
  {
    name: "connections break off again and again",
    kind: "way",
    run: async (scene) => {
      for (let i = 0; i < 6; i++) {
        for (const link of scene.rig.links(/^n/)) if (scene.random.chance(0.5)) link.reset();
        await sleep(scene.random.between(20, 300));
      }
    },
  },
];
