/** Trust: the graph of endorsements, trust configurations, and the trust that the service computes for a key. */
import Type from "typebox";
import {
  DEFAULT_DECAY,
  DEFAULT_GRAPH_DEPTH,
  DEFAULT_HOPS,
  MAX_ANCHORS,
  MAX_CATEGORIES,
  MAX_GRAPH_DEPTH,
  MAX_HOPS,
} from "../../verify/keys/contract.js";
import { EntryId, Fingerprint, nullable, optional, Pseudonym, pageSchema, Timestamp, TRUNCATED } from "../common.js";
import { AUTH } from "../identity/auth.js";
import { KeyStatus } from "../identity/keys.js";
import { Category, EndorsementStatus } from "./endorsements.js";

const Fraction = Type.Number({ minimum: 0, maximum: 1, description: "From 0 to 1." });

export const GraphQuery = Type.Object({
  max_depth: Type.Integer({
    minimum: 0,
    maximum: MAX_GRAPH_DEPTH,
    default: DEFAULT_GRAPH_DEPTH,
    description: "Hops from the root.",
  }),
  type: Type.Optional(Category),
  status: Type.Optional(EndorsementStatus),
  institution: Type.Optional(
    Type.String({ minLength: 1, description: "`institutional_metadata.name`; case is ignored." }),
  ),
  since: Type.Optional(
    Type.String({ description: "A date or date-time: only endorsements whose `since` is not before it." }),
  ),
  until: Type.Optional(
    Type.String({
      description: "A date, including that whole day, or a date-time: only endorsements whose `since` is not after it.",
    }),
  ),
});

const Named = Type.Boolean({ description: "Whether the key has signed its name and expiration." });

const GraphNode = Type.Object(
  {
    fingerprint: Fingerprint,
    pseudonym: Pseudonym,
    status: KeyStatus,
    named: Named,
    depth: Type.Integer({ minimum: 0, description: "Hops from the root, in either direction." }),
  },
  { title: "GraphNode" },
);

const GraphEdge = Type.Object(
  {
    from: Fingerprint,
    to: Fingerprint,
    category: Category,
    status: EndorsementStatus,
    offer_entry_id: EntryId,
    since: Type.String({ description: "When it was accepted; before that, when it was offered." }),
    until: nullable(Type.String({ description: "When it ended; otherwise the end of its validity." })),
  },
  { title: "GraphEdge", description: "An endorsement, from endorser to endorsed." },
);

export const Graph = Type.Object(
  {
    root: Fingerprint,
    nodes: Type.Array(GraphNode, { description: "Keys, nearest first." }),
    edges: Type.Array(GraphEdge, { description: "Endorsements between them." }),
    truncated: Type.Boolean({ description: "Whether there may be more within `max_depth`." }),
    depth_reached: Type.Integer({ minimum: 0, description: "Depth of the farthest node." }),
    cached: Type.Boolean({ description: "Whether it was computed for an earlier request." }),
  },
  { title: "Graph" },
);

export const TrustStatus = Type.Object(
  {
    fingerprint: Fingerprint,
    key_status: KeyStatus,
    key_named: Named,
    received: Type.Record(Type.String(), Type.Integer(), { description: "Endorsements by status." }),
    issued: Type.Record(Type.String(), Type.Integer(), { description: "Endorsements by status." }),
    capacity: Type.Integer({
      minimum: 0,
      description: "Number of endorsements that the key may issue without a discount.",
    }),
    capacity_used: Type.Integer({ minimum: 0, description: "Number of active endorsements that the key has issued." }),
    over_capacity: Type.Boolean({ description: "If true, each endorsement by this key is discounted." }),
    trust_level: Fraction,
    paths: Type.Array(
      Type.Object({
        keys: Type.Array(Fingerprint, { description: "From an anchor to the key, each endorsing the next." }),
        factors: Type.Array(Fraction, {
          description: "What each but the last passes on; what comes over the path is their product.",
        }),
      }),
      { description: "The best path through each key that an anchor endorses, the best first, at most five." },
    ),
    may_endorse: Type.Boolean({ description: "Whether it is trusted enough to endorse." }),
    alerts: Type.Integer({ minimum: 0, description: "Number of alerts that the key is compromised." }),
    ...TRUNCATED,
  },
  { title: "TrustStatus" },
);

const Anchors = Type.Array(Type.Object({ fingerprint: Fingerprint, weight: Fraction }), {
  maxItems: MAX_ANCHORS,
  description: "Each fingerprint once.",
});

const Threshold = Type.Number({ minimum: 0, maximum: 1, description: "Minimum score of a trusted signer." });
const Depth = Type.Integer({
  minimum: 1,
  maximum: MAX_HOPS,
  description: `Maximum number of hops; default ${DEFAULT_HOPS}.`,
});
const Decay = Type.Number({ minimum: 0, maximum: 1, description: `Factor for every hop; default ${DEFAULT_DECAY}.` });
const Weights = Type.Record(Type.String(), Fraction, {
  maxProperties: MAX_CATEGORIES,
  description: "Factor for each category; 1 for categories that are not listed.",
});

const POLICY = {
  direct_signer_anchors: optional(Anchors),
  endorser_anchors: optional(Anchors),
  minimum_threshold: Threshold,
  max_depth: optional(Depth),
  decay_per_hop: optional(Decay),
  category_weights: optional(Weights),
};

/** A configuration for one verification, which is not stored. */
export const TrustPolicy = Type.Object(POLICY, { title: "TrustPolicy" });

export const CreateTrustConfig = Type.Object(
  { fingerprint: Fingerprint, ...POLICY, ...AUTH },
  {
    title: "CreateTrustConfig",
    description: "The trust configuration of a key, and a proof of the key unless there is a session.",
  },
);

export const RevokeTrustConfig = Type.Object(
  { fingerprint: Fingerprint, ...AUTH },
  { title: "RevokeTrustConfig", description: "The key, and a proof of the key unless there is a session." },
);

export const TrustConfig = Type.Object(
  {
    id: Type.Integer({ minimum: 1, description: "Counted from 1." }),
    fingerprint: Fingerprint,
    direct_signer_anchors: Anchors,
    endorser_anchors: Anchors,
    minimum_threshold: Threshold,
    max_depth: Depth,
    decay_per_hop: Decay,
    category_weights: Weights,
    status: Type.Enum(["active", "superseded", "revoked"], {
      description: "A key has at most one active configuration.",
    }),
    created_at: Timestamp,
  },
  { title: "TrustConfig" },
);

export const TrustConfigPage = pageSchema(
  { trust_configs: Type.Array(TrustConfig, { description: "Oldest first." }) },
  "TrustConfigPage",
);

/** Layer 3 of one attestation. */
export const TrustVerdict = Type.Object(
  {
    status: Type.Enum(["valid", "warning", "not_evaluated"], { description: "`warning`: below the threshold." }),
    details: Type.String({ description: "A sentence." }),
    score: nullable(Fraction),
    threshold: nullable(Fraction),
    paths: Type.Array(
      Type.Object({
        anchor: Fingerprint,
        kind: Type.Enum(["direct", "endorsed"], { description: "Whether the anchor is the signer itself." }),
        weight: Fraction,
        score: Fraction,
        hops: Type.Array(
          Type.Object({
            from: Fingerprint,
            to: Fingerprint,
            category: Category,
            offer_entry_id: EntryId,
            factor: Type.Number({ minimum: 0, maximum: 1, description: "Category weight × discount × decay." }),
          }),
          { description: "Endorsements from the anchor to the signer; empty if the anchor is the signer." },
        ),
      }),
      { description: "The best path from each anchor, best first, at most five." },
    ),
  },
  { title: "TrustVerdict" },
);
