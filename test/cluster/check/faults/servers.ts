/** Faults of PostgreSQL: servers killed, frozen, promoted; a server that comes back with what nobody else has. */
import type { Rig } from "../../rig/rig.js";
import type { PostgresServer } from "../../servers/server.js";
import { briefly, type Fault, overLease, type Scene } from "./fault.js";

/** The end of a server: nothing that it sent before still arrives. */
async function lose(rig: Rig, server: PostgresServer): Promise<void> {
  const ways = rig.links(new RegExp(`-${server.name}$`));
  for (const link of ways) link.cut();
  await server.kill();
  for (const link of ways) link.reset();
  for (const link of ways) link.heal();
}

/** A standby becomes the primary, as Patroni or an operator would have it. */
const failOver = async ({ rig: { cluster } }: Scene): Promise<void> => cluster.promote(await cluster.newest());

/** Keeps what the primary writes from its standbys until `lose` or `Rig.heal`: commits wait, and are on one disk. */
function cutReplication(rig: Rig): void {
  for (const link of rig.links(new RegExp(`^s\\d-${rig.cluster.primary.name}$`))) link.cut();
}

/** Ends (or only cancels) the waiting of commits: PostgreSQL then shows what no standby has. */
async function endWaiting({ rig: { cluster }, random }: Scene): Promise<void> {
  const how = random.pick(["pg_terminate_backend", "pg_cancel_backend"]);
  await cluster.primary.query(`SELECT ${how}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
}

export const SERVER_FAULTS: readonly Fault[] = [
  {
    name: "the primary is killed and comes back",
    kind: "server",
    run: async (scene) => {
      const { primary } = scene.rig.cluster;
      await primary.kill();
      await briefly(scene);
      await primary.start();
    },
  },
  {
    name: "the primary is lost, and a standby promoted",
    kind: "server",
    run: async (scene) => {
      await lose(scene.rig, scene.rig.cluster.primary);
      await failOver(scene);
      await briefly(scene);
    },
  },
  {
    name: "the primary is frozen",
    kind: "server",
    run: async (scene) => {
      const { primary } = scene.rig.cluster;
      primary.freeze();
      await overLease(scene);
      primary.thaw();
      await briefly(scene);
    },
  },
  {
    name: "the primary is frozen, a standby promoted, and the old primary thaws as a primary",
    kind: "server",
    run: async (scene) => {
      const { primary } = scene.rig.cluster;
      primary.freeze();
      await briefly(scene);
      await failOver(scene);
      await briefly(scene);
      primary.thaw();
      await overLease(scene);
    },
  },
  {
    name: "a standby is killed",
    kind: "server",
    run: async (scene) => {
      await scene.random.pick(scene.rig.cluster.standbys).kill();
      await overLease(scene);
    },
  },
  {
    name: "a standby is frozen",
    kind: "server",
    run: async (scene) => {
      const standby = scene.random.pick(scene.rig.cluster.standbys);
      standby.freeze();
      await overLease(scene);
      standby.thaw();
    },
  },
  {
    name: "both standbys are frozen",
    kind: "server",
    run: async (scene) => {
      for (const standby of scene.rig.cluster.standbys) standby.freeze();
      await (scene.random.chance(0.5) ? briefly(scene) : overLease(scene));
      for (const standby of scene.rig.cluster.standbys) standby.thaw();
    },
  },
  {
    name: "walreceivers are frozen",
    kind: "server",
    run: async (scene) => {
      const { standbys } = scene.rig.cluster;
      const chosen = scene.random.chance(0.5) ? standbys : [scene.random.pick(standbys)];
      for (const standby of chosen) standby.freeze(/^walreceiver/);
      await overLease(scene);
      for (const standby of chosen) standby.thaw();
    },
  },
  {
    name: "the replay of a standby stands still",
    kind: "server",
    run: async (scene) => {
      const standby = scene.random.pick(scene.rig.cluster.standbys);
      await standby.query("SELECT pg_wal_replay_pause()");
      await overLease(scene);
      await standby.query("SELECT pg_wal_replay_resume()");
    },
  },
  {
    name: "waiting commits are ended, and the standbys come back",
    kind: "server",
    run: async (scene) => {
      cutReplication(scene.rig);
      for (let i = 0; i < 3; i++) {
        await briefly(scene);
        await endWaiting(scene);
      }
      scene.rig.heal();
      await briefly(scene);
    },
  },
  {
    name: "waiting commits are ended, and the primary is lost with them",
    kind: "server",
    run: async (scene) => {
      cutReplication(scene.rig);
      for (let i = 0; i < 3; i++) {
        await briefly(scene);
        await endWaiting(scene);
      }
      await briefly(scene);
      await lose(scene.rig, scene.rig.cluster.primary);
      await failOver(scene);
    },
  },
  {
    name: "the primary restarts while commits wait, and is lost then",
    kind: "server",
    run: async (scene) => {
      const { primary } = scene.rig.cluster;
      cutReplication(scene.rig);
      await briefly(scene);
      await primary.kill();
      await primary.start();
      await overLease(scene);
      await lose(scene.rig, primary);
      await failOver(scene);
    },
  },
  {
    name: "a process of the primary is killed, and it recovers",
    kind: "server",
    run: async (scene) => {
      for (let i = 0; i < 2; i++) {
        scene.rig.cluster.primary.killProcess(/^(?:walwriter|postgres cairnlog)/);
        await briefly(scene);
      }
    },
  },
  {
    name: "an old primary that has diverged is attached without a rewind, and no other standby is there",
    kind: "server",
    run: async (scene) => {
      const { rig } = scene;
      const { cluster } = rig;
      const old = cluster.primary;
      cutReplication(rig);
      // As long as nothing is written, it has not diverged, and would be a standby like others.
      do await briefly(scene);
      while (!(await cluster.isAhead()));
      await lose(rig, old);
      await failOver(scene);
      await briefly(scene);
      await cluster.attach(old);
      await briefly(scene);
      const sound = cluster.standbys.find((server) => server !== old)!;
      for (const link of rig.links(new RegExp(`^${sound.name}-`))) link.cut();
      await overLease(scene);
      if (scene.random.chance(0.5)) {
        // What only the primary and the diverged server have is lost with this. Nobody may have been told of it.
        await lose(rig, cluster.primary);
        await cluster.promote(sound);
      }
      rig.heal();
      await cluster.rejoin(old);
    },
  },
];
