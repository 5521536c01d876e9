/** What routes need that a service has one of, wherever it is. */
import type { VerifyReport } from "../../engine/log/check/verify.js";
import type { Checkpoints } from "../../engine/log/tlog/checkpoints.js";
import type { Anchored, AnchorStatus } from "../anchoring/anchoring.js";
import type { CosignerStatus } from "../cosigning/cosigning.js";
import type { ReplicationStatus } from "../replication/replication.js";
import type { RoleReader } from "../replication/role.js";
import type { Metrics } from "./observing/metrics.js";
import type { Readiness } from "./observing/readiness.js";

/** The log as other transparency tools read it (`docs/tiles.md`). Tiles need nothing that there is one of. */
export interface Tlog {
  /** The key with which its checkpoints are verified; null on a mirror that does not know it. */
  readonly vkey: string | null;
  /** The newest checkpoint that was published. @throws CairnlogError `not-found` without one */
  checkpoint(): string | Promise<string>;
  /** How it stands with the witnesses that cosign it; empty without any. */
  witnesses(): readonly CosignerStatus[] | Promise<readonly CosignerStatus[]>;
}

/** What a service has one of, whichever front end is asked. */
export interface Services {
  readonly readiness: Pick<Readiness, "check" | "checkAlive">;
  readonly metrics: Pick<Metrics, "text" | "contentType">;
  readonly anchoring: {
    anchor(): Promise<Anchored>;
    status(): AnchorStatus | Promise<AnchorStatus>;
  };
  readonly verification: { report(): Promise<VerifyReport> };
  readonly checkpoints: Pick<Checkpoints, "newest">;
  readonly tlog: Tlog;
  /** How a node of a replicated log stands; null for a service that is alone. */
  readonly replication: {
    readonly role: RoleReader;
    status(): ReplicationStatus | Promise<ReplicationStatus>;
  } | null;
}
