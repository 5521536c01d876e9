/** `GET /leader` and `GET /follower`: for balancers, which send writes to the one node that takes them. */
import { Node } from "../../../../engine/contract/service/health.js";
import { HttpError } from "../../route/problems.js";
import { type Route, route } from "../../route/route.js";
import type { Services } from "../../services.js";
import { notLeader } from "../roles/roles.js";

const ALONE = { role: "leader" } as const;

export function nodeRoutes(replication: Services["replication"]): Route[] {
  return [
    route({
      method: "GET",
      path: "/leader",
      summary: "Whether this node writes the log; a service that is alone does",
      answer: Node,
      limit: null,
      async handle() {
        if (!replication) return ALONE;
        const status = await replication.status();
        if (!replication.role.leads) throw notLeader(status.leader);
        return described(status);
      },
    }),
    route({
      method: "GET",
      path: "/follower",
      summary: "Whether this node follows another one that writes the log, and is up to date",
      answer: Node,
      limit: null,
      async handle() {
        const status = await replication?.status();
        if (!replication || !status || status.role === "leader")
          throw new HttpError("not-ready", "This node writes the log; it follows no other.", { "retry-after": "10" });
        if (replication.role.isStale)
          throw new HttpError("not-ready", "This node has had no news of the log for too long.", {
            "retry-after": "5",
          });
        return described(status);
      },
    }),
  ];
}

/** What a node tells of itself. */
export const described = ({
  role,
  leader,
  epoch,
  sequence,
  lagSeconds,
}: Awaited<ReturnType<NonNullable<Services["replication"]>["status"]>>) => ({
  role,
  leader,
  epoch,
  sequence,
  lag_seconds: lagSeconds,
});
