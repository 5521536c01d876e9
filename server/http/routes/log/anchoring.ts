/**
 * Operations by which the operator makes the log verifiable for others: anchoring it in Bitcoin, and signing its head
 * on request.
 */
import { Anchored, AnchorStatus } from "../../../../engine/contract/log/anchoring.js";
import { TreeHead } from "../../../../engine/contract/log/log.js";
import type { Writer } from "../../../../engine/log/state/executor.js";
import type { Gate } from "../../gate.js";
import { type Route, route } from "../../route/route.js";
import type { Services } from "../../services.js";

export function anchoringRoutes(
  writer: Pick<Writer, "signHead">,
  anchoring: Services["anchoring"],
  gate: Gate,
): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/log/anchor",
      summary: "Have the newest entry's hash put into Bitcoin; for the operator alone",
      proving: "operator",
      authorize: (asking) => gate.operatorOnly(asking),
      answer: Anchored,
      refusals: [401, 403, 409, 502],
      limit: "anchoring",
      handle: () => anchoring.anchor(),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/anchor-status",
      summary: "The newest anchored entry, how far its proof is, and whether anchoring is due",
      answer: AnchorStatus,
      limit: "general",
      handle: () => anchoring.status(),
    }),
    route({
      method: "POST",
      path: "/api/v1/log/sth/sign",
      summary: "Sign the head of the current size with a timestamp of now; for the operator alone",
      proving: "operator",
      authorize: (asking) => gate.operatorOnly(asking),
      answer: TreeHead,
      refusals: [401, 403, 409],
      limit: "general",
      handle: () => writer.signHead(),
    }),
  ];
}
