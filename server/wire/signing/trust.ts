/** Trust: the graph of endorsements, trust configurations, and how the service trusts a key. */
import Type from "typebox";
import { EntryId, Fingerprint, nullable, Pseudonym, pageOf, Timestamp } from "../common.js";
import { AuthProof } from "../identity/auth.js";
import { KeyStatus } from "../identity/keys.js";
import { Category, EndorsementStatus } from "./endorsements.js";

const Fraction = Type.Number({ minimum: 0, maximum: 1, description: "From 0 to 1." });

export const GraphQuery = Type.Object({
  max_depth: Type.Integer({ minimum: 0, maximum: 8, default: 3, description: "Hops from the root." }),
  type: Type.Optional(Category),
  status: Type.Optional(EndorsementStatus),
  institution: Type.Optional(
    Type.String({ minLength: 1, description: "`institutional_metadata.name`, without regard to case." }),
  ),
  since: Type.Optional(
    Type.String({ description: "A date or date-time; endorsements whose `since` is not before it." }),
  ),
  until: Type.Optional(
    Type.String({
      description: "A date, the whole day counting, or a date-time; those whose `since` is not after it.",
    }),
  ),
});

export const GraphNode = Type.Object(
  {
    fingerprint: Fingerprint,
    pseudonym: Pseudonym,
    status: KeyStatus,
    depth: Type.Integer({ minimum: 0, description: "Hops from the root, in whichever direction." }),
  },
  { title: "GraphNode" },
);

export const GraphEdge = Type.Object(
  {
    from: Fingerprint,
    to: Fingerprint,
    category: Category,
    status: EndorsementStatus,
    offer_entry_id: EntryId,
    since: Type.String({ description: "When it was accepted, or, while it has not been, offered." }),
    until: nullable(Type.String({ description: "When it was ended, or else until when it is valid." })),
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
    cached: Type.Boolean({ description: "Whether it was worked out for an earlier request." }),
  },
  { title: "Graph" },
);

export const TrustStatus = Type.Object(
  {
    fingerprint: Fingerprint,
    key_status: KeyStatus,
    received: Type.Record(Type.String(), Type.Integer(), { description: "Endorsements by status." }),
    issued: Type.Record(Type.String(), Type.Integer(), { description: "Endorsements by status." }),
    capacity: Type.Integer({ minimum: 0, description: "Endorsements that it may issue without a discount." }),
    capacity_used: Type.Integer({ minimum: 0, description: "Active endorsements issued." }),
    over_capacity: Type.Boolean({ description: "Then each of its endorsements is discounted." }),
    trust_level: Fraction,
    may_endorse: Type.Boolean({ description: "Whether it is trusted enough to endorse." }),
    alerts: Type.Integer({ minimum: 0, description: "Alerts that it is compromised." }),
  },
  { title: "TrustStatus" },
);

const Anchors = Type.Array(Type.Object({ fingerprint: Fingerprint, weight: Fraction }), {
  maxItems: 100,
  description: "Each once.",
});

const Threshold = Type.Number({ minimum: 0, maximum: 1, description: "Score from which a signer is trusted." });
const Depth = Type.Integer({ minimum: 1, maximum: 8, description: "Hops that are followed; default 4." });
const Decay = Type.Number({ minimum: 0, maximum: 1, description: "Factor on every hop; default 0.5." });
const Weights = Type.Record(Type.String(), Fraction, {
  maxProperties: 32,
  description: "Factor by category; 1 for one not listed.",
});

const POLICY = {
  direct_signer_anchors: Type.Optional(nullable(Anchors)),
  endorser_anchors: Type.Optional(nullable(Anchors)),
  minimum_threshold: Threshold,
  max_depth: Type.Optional(nullable(Depth)),
  decay_per_hop: Type.Optional(nullable(Decay)),
  category_weights: Type.Optional(nullable(Weights)),
};

/** A configuration that serves one verification and is not stored. */
export const TrustPolicy = Type.Object(POLICY, { title: "TrustPolicy" });

export const CreateTrustConfig = Type.Object(
  { fingerprint: Fingerprint, ...POLICY, auth: Type.Optional(nullable(AuthProof)) },
  {
    title: "CreateTrustConfig",
    description: "Whom the key trusts, how far, and a proof of it unless there is a session.",
  },
);

export const RevokeTrustConfig = Type.Object(
  { fingerprint: Fingerprint, auth: Type.Optional(nullable(AuthProof)) },
  { title: "RevokeTrustConfig", description: "The key, and a proof of it unless there is a session." },
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
    status: Type.Enum(["active", "superseded", "revoked"], { description: "A key has one active one at most." }),
    created_at: Timestamp,
  },
  { title: "TrustConfig" },
);

export const TrustConfigPage = pageOf(
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
          { description: "Endorsements from the anchor to the signer; none when it is the signer." },
        ),
      }),
      { description: "The best way from each anchor, best first, five at most." },
    ),
  },
  { title: "TrustVerdict" },
);
