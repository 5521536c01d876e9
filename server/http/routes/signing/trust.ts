/** Trust: the graph of endorsements, trust configurations, and the service's trust in keys. */

import { turn } from "../../../../engine/base/turns.js";
import { PageQuery } from "../../../../engine/contract/common.js";
import { KeyParams } from "../../../../engine/contract/identity/keys.js";
import {
  CreateTrustConfig,
  Graph,
  GraphQuery,
  RevokeTrustConfig,
  TrustConfig,
  TrustConfigPage,
  TrustStatus,
} from "../../../../engine/contract/signing/trust.js";
import type { GraphAnswer } from "../../../../engine/registry/graph/graph.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Asking, Gate } from "../../gate.js";
import { type Route, route } from "../../route/route.js";
import { Answer } from "../../transport/answer.js";

/** Rows that are turned into JSON at a time, which takes well below a millisecond. */
const ROWS = 512;
const WRITE_REFUSALS = [401, 403, 404, 409, 410];

type Parts = Pick<Served, "graphs" | "keys" | "trust" | "trustConfigs" | "endorsementQueries">;

export function trustRoutes(parts: Parts, gate: Gate): Route[] {
  return [...graphRoutes(parts), ...configReadRoutes(parts), ...configWriteRoutes(parts, gate)];
}

function graphRoutes({ graphs, keys, trust, endorsementQueries }: Parts): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/graph/{fingerprint}",
      summary: "The endorsements around a key, breadth first in both directions",
      params: KeyParams,
      query: GraphQuery,
      answer: Graph,
      refusals: [404],
      limit: "general",
      handle: async ({ params, query }) => graphJson(await graphs.around(params.fingerprint, query)),
    }),
    route({
      method: "GET",
      path: "/api/v1/endorsements/{fingerprint}/status",
      summary: "A key's endorsements by status, and how the service trusts it",
      params: KeyParams,
      answer: TrustStatus,
      refusals: [404],
      limit: "general",
      async handle({ params }) {
        const { fingerprint, status: key_status, named: key_named } = keys.find(params.fingerprint);
        const counts = await endorsementQueries.statusCounts(fingerprint);
        const { discount: _, ...standing } = await trust.standing(fingerprint);
        const paths = await trust.paths(fingerprint);
        return { fingerprint, key_status, key_named, ...counts, ...standing, paths };
      },
    }),
  ];
}

function configReadRoutes({ trustConfigs }: Parts): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/trust-configs",
      summary: "Every trust configuration, oldest first",
      query: PageQuery,
      answer: TrustConfigPage,
      limit: "general",
      handle: ({ query }) => trustConfigs.list(query),
    }),
    route({
      method: "GET",
      path: "/api/v1/trust-configs/{fingerprint}",
      summary: "A key's newest trust configuration",
      params: KeyParams,
      answer: TrustConfig,
      refusals: [404],
      limit: "general",
      handle: ({ params }) => trustConfigs.get(params.fingerprint),
    }),
  ];
}

function configWriteRoutes({ trustConfigs }: Parts, gate: Gate): Route[] {
  const authorize = (asking: Asking & { readonly body: unknown }) => gate.provenKey(asking, asking.body);
  return [
    route({
      method: "POST",
      path: "/api/v1/trust-configs",
      summary: "Store a trust configuration in place of the key's active one",
      proving: "session-or-proof",
      authorize,
      body: CreateTrustConfig,
      answer: TrustConfig,
      refusals: WRITE_REFUSALS,
      limit: "general",
      handle: ({ body, proof, request }) =>
        trustConfigs.create({ ...body, fingerprint: gate.own(proof, body.fingerprint) }, request.client),
    }),
    route({
      method: "POST",
      path: "/api/v1/trust-configs/revoke",
      summary: "Revoke the key's active trust configuration",
      proving: "session-or-proof",
      authorize,
      body: RevokeTrustConfig,
      answer: TrustConfig,
      refusals: WRITE_REFUSALS,
      limit: "general",
      handle: ({ body, proof, request }) => trustConfigs.revoke(gate.own(proof, body.fingerprint), request.client),
    }),
  ];
}

/** A graph as JSON, made in parts: tens of thousands of rows at once would delay all other requests. */
async function graphJson({ root, nodes, edges, ...rest }: GraphAnswer): Promise<Answer> {
  const parts = [
    `{"root":${JSON.stringify(root)},"nodes":[`,
    ...(await jsonRows(nodes)),
    `],"edges":[`,
    ...(await jsonRows(edges)),
    `],${JSON.stringify(rest).slice(1)}`,
  ];
  return new Answer(Buffer.concat(parts.map((part) => Buffer.from(part))));
}

async function jsonRows(rows: readonly unknown[]): Promise<string[]> {
  const texts: string[] = [];
  for (let from = 0; from < rows.length; from += ROWS) {
    if (from) await turn();
    texts.push((from ? "," : "") + JSON.stringify(rows.slice(from, from + ROWS)).slice(1, -1));
  }
  return texts;
}
