/** What a fault of the rounds is. Each does its harm while the load goes on; `Rig.restore` mends everything afterwards. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../../reliability/random.js";
import type { Node } from "../../rig/node.js";
import type { Rig } from "../../rig/rig.js";

/** Milliseconds after which a candidate takes over from a leader of whom nothing is heard. */
export const LEASE_MS = 1_800;

export interface Scene {
  readonly rig: Rig;
  readonly random: Random;
  /** The node that leads as the fault begins, and another one. */
  readonly leader: Node;
  readonly follower: Node;
}

/**
 * Faults of one kind exclude each other: replication survives the loss of one server, and a promotion needs the other
 * two.
 */
export type Kind = "node" | "server" | "way";

export interface Fault {
  readonly name: string;
  readonly kind: Kind;
  readonly run: (scene: Scene) => Promise<void>;
}

export const briefly = ({ random }: Scene): Promise<void> => sleep(random.between(50, 600));
export const overLease = ({ random }: Scene): Promise<void> => sleep(LEASE_MS * random.between(1.2, 2.2));
