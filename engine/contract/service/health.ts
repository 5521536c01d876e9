/** Health of the service. */
import Type from "typebox";
import { END } from "../log/shards.js";

/** The operator's name (`SERVICE_OPERATOR_NAME`) by which a log says that it is a demonstration: that of `cairnlog demo`. */
export const DEMONSTRATION = "cairnlog demo";

export const Health = Type.Object(
  {
    status: Type.Literal("ok", { description: "Always `ok`." }),
    version: Type.String({ description: "Version of the service." }),
    attestation_limit: Type.Optional(
      Type.Object(
        {
          requests: Type.Integer({ description: "Attestations that are taken from one address in that time." }),
          seconds: Type.Integer({ description: "Length of the time." }),
        },
        { description: "The limit of attestations; absent where nothing is limited, and on a mirror." },
      ),
    ),
    read_only: Type.Optional(Type.Literal(true, { description: "Present on a mirror, which refuses writes." })),
    demonstration: Type.Optional(
      Type.Literal(true, {
        description: "Present on a log of `cairnlog demo`, whose operator key lasts as long as the demonstration.",
      }),
    ),
  },
  { title: "Health" },
);

export const WritersRule = Type.Object(
  {
    rule: Type.Enum(["everybody", "registered", "endorsed", "file"], {
      description:
        "`everybody`; `registered`: keys that are registered; `endorsed`: trust anchors, and keys with an active endorsement by one; `file`: keys on a list of the operator's. The operator key always may.",
    }),
    sentence: Type.String({ description: "The rule in a sentence for people." }),
  },
  { title: "Writers" },
);

const nodeMembers = {
  role: Type.Enum(["leader", "follower"], { description: "Whether this node writes the log, or follows another." }),
  leader: Type.Optional(
    Type.Union([Type.String(), Type.Null()], {
      description: "Address of the node that writes the log, if it is known.",
    }),
  ),
  epoch: Type.Optional(Type.Integer({ description: "How often the lead has changed." })),
  sequence: Type.Optional(Type.Integer({ description: "Number of the newest record of the journal on this node." })),
  lag_seconds: Type.Optional(
    Type.Union([Type.Number(), Type.Null()], {
      description: "Seconds since this node knew that it had everything; null before the first time.",
    }),
  ),
};

export const Node = Type.Object(nodeMembers, {
  title: "Node",
  description: "A node of the log. All but `role` is there only where several nodes keep the log.",
});

const Witness = Type.Object({
  name: Type.String({ description: "Its name in the policy of the operator." }),
  vkey: Type.String({ description: "The key that verifies its cosignatures, as the policy has it." }),
  tree_size: Type.Union([Type.Integer(), Type.Null()], {
    description: "Size of the newest checkpoint that it has cosigned.",
  }),
  cosigned_at: Type.Union([Type.Integer(), Type.Null()], {
    description: "Time of that cosignature, in seconds since 1970.",
  }),
  late: Type.Boolean({ description: "Whether it has not cosigned the newest checkpoint in time." }),
  trouble: Type.Union([Type.String(), Type.Null()], { description: "Why it did not cosign when it was asked last." }),
});

export const Ready = Type.Object(
  {
    status: Type.Literal("ok", { description: "Always `ok`." }),
    transport: Type.Enum(["uws", "node"], {
      description: "The HTTP library that serves: uWebSockets.js or `node:http`.",
    }),
    vkey: Type.Optional(
      Type.String({
        description: "The key that verifies the checkpoints at `/tlog/checkpoint` (c2sp.org/signed-note).",
      }),
    ),
    witnesses: Type.Optional(
      Type.Array(Witness, {
        description: "The witnesses of the checkpoints at `/tlog/checkpoint`; absent without any.",
      }),
    ),
    writers: Type.Optional(
      Type.Object(WritersRule.properties, { description: "Who may write; absent on a mirror, where nobody may." }),
    ),
    frozen: Type.Optional(Type.Object(END, { description: "How the log ended; absent while it may grow." })),
    replication: Type.Optional(
      Type.Object(nodeMembers, { description: "How this node stands; absent where one machine alone keeps the log." }),
    ),
    warnings: Type.Optional(Type.Array(Type.String(), { description: "Conditions that the operator should correct." })),
  },
  { title: "Ready" },
);

export const Alive = Type.Object({ status: Type.Literal("ok", { description: "Always `ok`." }) }, { title: "Alive" });
