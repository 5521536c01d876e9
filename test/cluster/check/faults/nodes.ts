/** Faults of nodes: killed, frozen, stopped, with clocks that are wrong. */
import { setTimeout as sleep } from "node:timers/promises";
import { briefly, type Fault, LEASE_MS, overLease } from "./fault.js";

export const NODE_FAULTS: readonly Fault[] = [
  {
    name: "the leader is killed",
    kind: "node",
    run: async (scene) => {
      await scene.leader.kill();
      await (scene.random.chance(0.5) ? briefly(scene) : overLease(scene));
    },
  },
  {
    name: "the leader is frozen for longer than its lease",
    kind: "node",
    run: async (scene) => {
      scene.leader.freeze();
      await overLease(scene);
      scene.leader.thaw();
      await briefly(scene);
    },
  },
  {
    name: "the leader is frozen for less than its lease",
    kind: "node",
    run: async (scene) => {
      for (let i = 0; i < 3; i++) {
        scene.leader.freeze();
        await sleep(scene.random.between(100, LEASE_MS * 0.9));
        scene.leader.thaw();
        await briefly(scene);
      }
    },
  },
  {
    name: "the leader is stopped in order",
    kind: "node",
    run: async ({ leader }) => {
      await leader.stop();
    },
  },
  {
    name: "the follower is killed",
    kind: "node",
    run: async (scene) => {
      await scene.follower.kill();
      await briefly(scene);
    },
  },
  {
    name: "both nodes are killed",
    kind: "node",
    run: async (scene) => {
      await Promise.all([scene.leader.kill(), scene.follower.kill()]);
      await briefly(scene);
    },
  },
  {
    name: "the clock of the next leader is an hour back",
    kind: "node",
    run: async (scene) => {
      scene.follower.clock.set(-3_600_000);
      await briefly(scene);
      await scene.leader.kill();
      await overLease(scene);
      scene.follower.clock.set(0);
    },
  },
  {
    name: "the clock of the leader steps back and forth",
    kind: "node",
    run: async (scene) => {
      for (const seconds of [-60, 5, -5, 0]) {
        scene.leader.clock.set(seconds * 1000);
        await briefly(scene);
      }
    },
  },
  {
    name: "the lead is handed over",
    kind: "node",
    run: async ({ rig, follower }) => {
      // Refused if a fault of another kind has changed who leads, or nobody does.
      await rig.command(follower, ["promote", "--json"]).catch(() => {});
    },
  },
];
