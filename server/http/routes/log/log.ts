/** The transparency log: entries, tree heads, proofs, verification. */
import type { Static } from "typebox";
import { CairnlogError } from "../../../../engine/base/error.js";
import { turn } from "../../../../engine/base/turns.js";
import {
  ConsistencyProof,
  ConsistencyQuery,
  Entry,
  EntryParams,
  InclusionProof,
  LogHead,
  LogHeadQuery,
  OperatorPublicKey,
  ProofParams,
  ProofQuery,
  TreeHead,
  TreeHeadParams,
  TreeHeads,
  TreeHeadsQuery,
  VerifyReport,
} from "../../../../engine/contract/log/log.js";
import { PayloadWithheld, WithholdPayload } from "../../../../engine/contract/log/withholding.js";
import type { Log } from "../../../../engine/log/log.js";
import { withhold } from "../../../../engine/log/operator/entries.js";
import { formatTimestamp, microsOf, systemClock } from "../../../../engine/log/state/clock.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { TreeVersion } from "../../../../engine/verify/tree/merkle.js";
import type { Gate } from "../../gate.js";
import { type Route, route } from "../../route/route.js";
import type { Services } from "../../services.js";
import { Answer } from "../../transport/answer.js";
import { tagOf } from "../../transport/caching.js";

/** How the text of an entry ends, unless it has a second digest or a timestamp proof: with its hash, in this many bytes. */
const ENDS_WITH_HASH = /^([0-9a-f]{64})","is_primary":true\}\]\}$/;
const END_BYTES = 64 + '","is_primary":true}]}'.length;

export function logRoutes(log: Log, verification: Services["verification"]): Route[] {
  return [...entryRoutes(log), ...treeRoutes(log), ...trustRoutes(log, verification)];
}

function entryRoutes(log: Log): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/log/head",
      summary: "The newest entry and the number of entries",
      query: LogHeadQuery,
      answer: LogHead,
      limit: "general",
      async handle({ query: { periods } }) {
        const entry = log.head();
        if (!entry) return { head: null, entry_count: 0 };
        const { id, entry_hash, event_type, timestamp } = entry;
        const head = { head: { id, entry_hash, event_type, timestamp }, entry_count: log.size };
        return periods === undefined ? head : { ...head, activity: await activityOf(log, periods) };
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/log/{entry_id}",
      summary: "One entry",
      params: EntryParams,
      answer: Entry,
      refusals: [404],
      limit: "general",
      reached: ({ params }) => hasPassed(log, params.entry_id),
      // The entry may get an anchoring proof later, and the proof may grow.
      keep: () => "revalidate",
      handle({ params }) {
        const entry = log.entryJson(params.entry_id);
        if (!entry) throw new CairnlogError("not-found", `The log has no entry ${params.entry_id}.`);
        return new Answer(entry, { etag: log.isWithheld(params.entry_id) ? tagOf(entry) : entryTag(entry) });
      },
    }),
  ];
}

/** Whether the log has the entry with this id, or a later one: imported history may leave ids out. */
const hasPassed = (log: Log, id: number): boolean =>
  log.leafIndexOf(id) !== undefined || log.leafIndexAfter(id) < log.size;

/**
 * The tag of an entry as it is served. What is on the log never changes, so its hash, which the text ends with, tells as
 * much as a hash of the text: 0.2 instead of 0.9 µs. A proof that joins it later makes another end. Not for an entry whose
 * payload is withheld: it ends as before.
 */
function entryTag(entry: Buffer): string {
  const hash = ENDS_WITH_HASH.exec(entry.toString("latin1", entry.length - END_BYTES))?.[1];
  return hash === undefined ? tagOf(entry) : `"${hash}"`;
}

function treeRoutes(log: Log): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/log/sth",
      summary: "The newest signed tree head",
      answer: TreeHead,
      refusals: [404],
      limit: "general",
      keep: () => "revalidate",
      handle: () => treeHead(log, log.size),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/sth/{tree_size}",
      summary: "The first signed tree head of a size",
      params: TreeHeadParams,
      answer: TreeHead,
      refusals: [404],
      limit: "general",
      reached: ({ params }) => params.tree_size <= log.size,
      keep: () => "forever",
      handle: ({ params }) => treeHead(log, params.tree_size),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/heads",
      summary: "The first signed tree heads of a range of sizes",
      query: TreeHeadsQuery,
      answer: TreeHeads,
      limit: "general",
      async handle({ query: { from, limit } }) {
        // A thousand heads take 3 ms, so each request gets its own turn of the event loop.
        await turn();
        const heads = [];
        const end = Math.min(from + limit - 1, log.size);
        for (let size = from; size <= end; size++) {
          const head = log.treeHead(size);
          if (head) heads.push(head);
        }
        return { heads };
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/log/proof/{leaf_index}",
      summary: "Proof that an entry is in the tree of a size",
      params: ProofParams,
      query: ProofQuery,
      answer: InclusionProof,
      refusals: [404],
      limit: "general",
      reached: ({ params, query }) => Math.max(params.leaf_index + 1, query.tree_size ?? 0) <= log.size,
      keep: ({ query }) => (query.tree_size === undefined ? "revalidate" : "forever"),
      handle({ params, query }) {
        if (params.leaf_index >= log.size)
          throw new CairnlogError("not-found", `The log has no leaf ${params.leaf_index}.`);
        return inclusionProof(log, params.leaf_index, query);
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/log/{entry_id}/proof",
      summary: "The same for an entry by its id; ids say nothing of places where history was imported",
      params: EntryParams,
      query: ProofQuery,
      answer: InclusionProof,
      refusals: [404],
      limit: "general",
      reached: ({ params, query }) => (query.tree_size ?? 0) <= log.size && hasPassed(log, params.entry_id),
      keep: ({ query }) => (query.tree_size === undefined ? "revalidate" : "forever"),
      handle({ params, query }) {
        const leafIndex = log.leafIndexOf(params.entry_id);
        if (leafIndex === undefined) throw new CairnlogError("not-found", `The log has no entry ${params.entry_id}.`);
        return inclusionProof(log, leafIndex, query);
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/log/consistency",
      summary: "Proof that the tree of one size is the beginning of the tree of another",
      query: ConsistencyQuery,
      answer: ConsistencyProof,
      limit: "general",
      reached: ({ query }) => Math.max(query.from, query.to ?? 0) <= log.size,
      keep: ({ query }) => (query.to === undefined ? "revalidate" : "forever"),
      handle: ({ query }) => log.consistencyProof(query.from, query.to, query.tree_version as TreeVersion | undefined),
    }),
  ];
}

function inclusionProof(log: Log, leafIndex: number, query: Static<typeof ProofQuery>) {
  const { tree_size: treeSize, tree_version } = query;
  const { json, tag } = log.inclusionProofJson(leafIndex, {
    ...(treeSize === undefined ? {} : { treeSize }),
    ...(tree_version === undefined ? {} : { treeVersion: tree_version as TreeVersion }),
  });
  return new Answer(json, { etag: `"${tag}"` });
}

function treeHead(log: Log, treeSize: number) {
  const head = treeSize > 0 ? log.treeHead(treeSize) : null;
  if (head) return head;
  const reason = log.size ? `There is no tree head of size ${treeSize}.` : "The log is empty; it has no tree head yet.";
  throw new CairnlogError("not-found", reason);
}

function trustRoutes(log: Log, verification: Services["verification"]): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/log/verify",
      summary: "Re-derive the whole log from its stored payloads and report what does not hold",
      answer: VerifyReport,
      limit: "log-verification",
      handle: () => verification.report(),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/operator-key",
      summary: "The public key that signs the tree heads, and those that signed earlier ones",
      answer: OperatorPublicKey,
      limit: "general",
      handle() {
        const { current, chain } = log.operators;
        return {
          fingerprint: current.fingerprint,
          algorithm: current.algorithm,
          public_key: current.pem,
          operators: chain,
        };
      },
    }),
  ];
}

/** How many entries were recorded when, from the first entry of a log until now. */
type Activity = NonNullable<Static<typeof LogHead>["activity"]>;

/** The activity of a log with entries, in `periods` equal periods. Each is found by two searches, in a turn of its own. */
async function activityOf(log: Log, periods: number): Promise<Activity> {
  const [first, newest] = [microsAt(log, 0), microsAt(log, log.size - 1)];
  // Imported history may have been recorded in any order, and by a clock that was ahead.
  const start = Math.min(first, newest);
  const end = Math.max(systemClock(), newest + 1);
  const counts: number[] = [];
  const borderOf = (period: number) => start + Math.round(((end - start) * period) / periods);
  for (let period = 0; period < periods; period++) {
    await turn();
    const stretches = log.between(borderOf(period), borderOf(period + 1));
    counts.push(stretches.reduce((sum, { from, to }) => sum + to - from, 0));
  }
  return { start: formatTimestamp(start), end: formatTimestamp(end), counts };
}

const microsAt = (log: Log, leafIndex: number): number => microsOf(log.entryAt(leafIndex)!.timestamp);

// Payloads that the operator withholds.

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
