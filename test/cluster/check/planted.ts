/** Faults of replication that the rounds must find when they are planted in the service, and by which rounds. */
import type { PlantedFault } from "../../reliability/planted.js";

export interface ClusterFault extends PlantedFault {
  /** Names of the faults of the rounds under which it shows. */
  readonly shows: readonly string[];
  /** Number of rounds in which it must be found. */
  readonly rounds: number;
}

export const CLUSTER_FAULTS: readonly ClusterFault[] = [];
