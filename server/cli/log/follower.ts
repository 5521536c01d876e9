/** What `cairnlog monitor` follows: a cairnlog, with all that its entries mean, or any log of checkpoints and tiles. */
import { join } from "node:path";
import type { Policy, TreeHead } from "../../../engine/verify/index.js";
import type { CheckpointHead } from "../../monitor/alarm.js";
import { Monitor, type MonitorOptions } from "../../monitor/monitor.js";
import { TiledMonitor } from "../../monitor/tiled/monitor.js";

export interface Follower {
  /** @throws Misbehaviour; ClientError if the round could not be finished; CairnlogError */
  round(options: { readonly audit: boolean }): Promise<void>;
  /** The newest head that held. */
  newest(): Promise<TreeHead | CheckpointHead | null>;
  /** What a finished round has verified: a line for people, and members of a line of JSON. */
  verified(): Promise<{ readonly text: string; readonly json: Readonly<Record<string, unknown>> }>;
  /** Whether it has ended: then it is silent for good. */
  readonly isFrozen: boolean;
  close(): Promise<void>;
}

/** @throws as `Monitor` does */
export function cairnlogFollower(options: MonitorOptions): Follower {
  const monitor = new Monitor(options);
  return {
    round: (how) => monitor.round(how),
    newest: () => monitor.newestHead(),
    async verified() {
      const head = await monitor.mirroredHead();
      const text = head
        ? `verified: ${head.tree_size} entries, root ${head.root_hash}, head of ${head.timestamp}${monitor.isFrozen ? ", frozen" : ""}`
        : "The log has no tree head yet.";
      return { text, json: { verified: monitor.size, head, ...(monitor.isFrozen && { frozen: true }) } };
    },
    get isFrozen() {
      return monitor.isFrozen;
    },
    close: () => monitor.close(),
  };
}

/** @throws as `TiledMonitor` does */
export function tiledFollower({
  server,
  folder,
  fetch,
  patience,
  onProgress,
  policy,
  isUnpruned,
  onFrozen,
}: Pick<MonitorOptions, "server" | "folder" | "fetch" | "patience" | "onProgress" | "onFrozen"> & {
  readonly policy: Policy;
  readonly isUnpruned: boolean;
}): Follower {
  let missing: string[] = [];
  const monitor = new TiledMonitor({
    url: server,
    policy,
    mirror: join(folder.path, "mirror"),
    fetch,
    patience,
    isUnpruned,
    onMissing: (path) => missing.push(path),
    known: folder,
    onFrozen,
    ...(onProgress && { onProgress }),
  });
  let cosigned: readonly string[] = [];
  const newest = async (): Promise<CheckpointHead | null> => {
    const kept = monitor.newest();
    if (!kept) return null;
    const { origin, treeSize: tree_size, rootHash: root_hash } = kept;
    return { origin, tree_size, root_hash, timestamp: await monitor.lastLife(kept) };
  };
  return {
    async round(how) {
      missing = [];
      const verdict = await monitor.round(how);
      cosigned = verdict.cosigned.map(({ witness }) => witness.name);
    },
    newest,
    get isFrozen() {
      return folder.end !== null;
    },
    async verified() {
      const head = (await newest())!;
      const isFrozen = folder.end !== null;
      const by = cosigned.length ? `, cosigned by ${cosigned.join(", ")}` : "";
      return {
        text: `verified: ${head.tree_size} entries, root ${head.root_hash}, checkpoint of ${head.origin}${by}${isFrozen ? ", frozen" : ""}${gone(missing)}`,
        json: {
          ...{ verified: head.tree_size, head, cosigned },
          ...(isFrozen && { frozen: true }),
          ...(missing.length && { missing }),
        },
      };
    },
    close: async () => {},
  };
}

/** What a line says of mirrored bundles that are gone. */
function gone([first, ...more]: readonly string[]): string {
  if (first === undefined) return "";
  return `; not served any more, but mirrored: ${first}${more.length ? ` and ${more.length} more` : ""}`;
}
