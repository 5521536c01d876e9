/** What routes need that a service has one of, wherever it is. */
import type { Checkpoints } from "../../engine/log/tree/checkpoints.js";
import type { Anchored, AnchorStatus } from "../anchoring/anchoring.js";
import type { Metrics } from "./observing/metrics.js";
import type { Readiness } from "./observing/readiness.js";

/** What a service has one of, whichever front end is asked. */
export interface Services {
  readonly readiness: Pick<Readiness, "check" | "checkAlive">;
  readonly metrics: Pick<Metrics, "text" | "contentType">;
  readonly anchoring: {
    anchor(): Promise<Anchored>;
    status(): AnchorStatus | Promise<AnchorStatus>;
  };
  readonly checkpoints: Pick<Checkpoints, "newest">;
}
