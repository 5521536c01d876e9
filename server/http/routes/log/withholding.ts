/** Payloads that the operator withholds. */
import { EntryParams } from "../../../../engine/contract/log/log.js";
import { PayloadWithheld, WithholdPayload } from "../../../../engine/contract/log/withholding.js";
import { withhold } from "../../../../engine/log/operator/entries.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Gate } from "../../gate.js";
import { type Route, route } from "../../route/route.js";

export const withholdingRoutes = (registry: Pick<Served, "log" | "writer">, gate: Gate): Route[] => [
  route({
    method: "POST",
    path: "/api/v1/log/{entry_id}/withhold",
    summary:
      "Withhold the payload of an attestation or an encrypted claim, or the name of a key, from everybody; for the operator alone",
    proving: "operator",
    authorize: (asking) => gate.operatorOnly(asking),
    params: EntryParams,
    body: WithholdPayload,
    answer: PayloadWithheld,
    refusals: [401, 403, 404, 409],
    limit: "general",
    async handle({ params, body: { basis = null, ...said } }) {
      const { log_entry_id, leaf_index, entry_hash, sth } = await withhold(registry, params.entry_id, {
        basis,
        ...said,
      });
      return { log_entry_id, leaf_index, entry_hash, sth };
    },
  }),
];
