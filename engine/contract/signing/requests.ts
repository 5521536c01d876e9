/** Attestation requests, their answers, request policies, and the inbox of a key. */
import Type from "typebox";
import {
  ATTESTATION_ID,
  ATTESTATION_TYPE,
  DEADLINE_DAYS,
  DECISIONS,
  ENDED_REASONS,
  MAX_CLAIMS_BYTES,
  MAX_PREDICATE_BYTES,
  NAMING,
  NONCE,
  NOTIFICATION_KINDS,
  POLICY_ACTIONS,
  REASON,
  REQUEST_STATUSES,
  STATEMENT,
} from "../../verify/keys/contract.js";
import {
  bounded,
  DOCUMENTED,
  EntryId,
  Fingerprint,
  freeForm,
  LeafIndex,
  nullable,
  optional,
  PAGE_QUERY,
  pageSchema,
  Timestamp,
} from "../common.js";
import { AUTH } from "../identity/auth.js";

const Own = bounded({ ...NAMING, min: 0 }, "Default: the proven key.");
const RequestId = Type.String({ description: "UUID." });
const Status = Type.Enum(REQUEST_STATUSES, {
  description: "`held`: the policy holds it for the target, who can still answer.",
});
const Decision = Type.Enum(DECISIONS, { description: "The answer." });
const AttestationId = Type.String({
  description: "The attestation given in answer; null if the request was declined.",
});
const Reason = Type.String({ description: "As given." });
const AttestationType = Type.String({ description: "Type of the requested attestation." });
const Predicates = freeForm("As published.");
const Action = Type.Enum(POLICY_ACTIONS, { description: "Action for a request that does not satisfy the policy." });

export const CreateRequest = Type.Object(
  {
    requester_fingerprint: optional(Own),
    target_fingerprint: bounded(NAMING, "A registered key."),
    attestation_type: bounded(ATTESTATION_TYPE, "Type of the requested attestation."),
    nonce: bounded(NONCE, "A text that this requester has not used before."),
    intent_statement: optional(bounded(STATEMENT, "The purpose of the requested attestation.")),
    claims: optional(freeForm(`Any members; at most ${MAX_CLAIMS_BYTES} bytes as canonical JSON (RFC 8785).`)),
    deadline: optional(
      Type.String({
        description: `At most ${DEADLINE_DAYS.max} days ahead; default: ${DEADLINE_DAYS.default} days.`,
        format: "date-time",
      }),
    ),
    ...AUTH,
  },
  {
    title: "CreateAttestationRequest",
    description: "The target, the requested attestation, and a proof of the requester unless there is a session.",
  },
);

const SUMMARY = {
  request_id: RequestId,
  status: Status,
  deadline: Timestamp,
  created_at: Timestamp,
  log_entry_id: EntryId,
  leaf_index: LeafIndex,
  requester_fingerprint: Fingerprint,
  target_fingerprint: Fingerprint,
  attestation_type: AttestationType,
};

const RecordedResponse = Type.Object(
  {
    decision: Decision,
    responder_fingerprint: Type.String({ description: "The operator key, if a policy gave the answer." }),
    by_target: Type.Boolean({ description: "Whether the target has answered. Anybody else may answer, too." }),
    attestation_id: nullable(AttestationId),
    reason: nullable(Reason),
    responded_at: Timestamp,
    log_entry_id: EntryId,
    leaf_index: LeafIndex,
  },
  { description: "The answer that the status follows: the target's if there is one, else the first; null before." },
);
const Responses = Type.Array(RecordedResponse, {
  description: "In the order in which they came; at most eight by others than the target.",
});

export const AttestationRequest = Type.Object(
  {
    ...SUMMARY,
    nonce: Type.String({ description: "The requester's nonce." }),
    intent_statement: nullable(Type.String({ description: "The purpose of the requested attestation." })),
    claims: freeForm("As sent; empty if absent."),
    policy_entry_id: nullable(EntryId),
    response: nullable(RecordedResponse),
    responses: Responses,
  },
  { title: "AttestationRequest" },
);

export const RequestPage = pageSchema(
  {
    requests: Type.Array(Type.Object({ ...SUMMARY, responses: Responses }, { title: "AttestationRequestSummary" }), {
      description: "Oldest first.",
    }),
  },
  "AttestationRequestPage",
);

export const RequestParams = Type.Object({ request_id: RequestId });

export const RequestQuery = Type.Object({
  target: Type.Optional(Type.String({ description: "Requests to this key." })),
  requester: Type.Optional(Type.String({ description: "Requests by this key. Name a target, a requester or both." })),
  status: Type.Optional(Status),
  ...PAGE_QUERY,
});

export const Respond = Type.Object(
  {
    decision: Decision,
    responder_fingerprint: optional(Own),
    attestation_id: optional(
      bounded(
        { ...ATTESTATION_ID, min: 0 },
        "Required to accept: an attestation by the responder, by the target, or by a key that has succeeded one of them and signed that.",
      ),
    ),
    reason: optional(bounded(REASON, "Why, for the requester and the log.")),
    ...AUTH,
  },
  {
    title: "RespondToAttestationRequest",
    description: "The answer, and a proof of the responder unless there is a session.",
  },
);

export const RequestResponse = Type.Object(
  {
    request_id: RequestId,
    status: Type.Enum(["accepted", "declined"], {
      description: "The status of the request, which follows the target's answer if there is one, else the first.",
    }),
    decision: Decision,
    responder_fingerprint: Fingerprint,
    attestation_id: nullable(AttestationId),
    reason: nullable(Reason),
    log_entry_id: EntryId,
    leaf_index: LeafIndex,
  },
  { title: "AttestationRequestResponse" },
);

export const PublishPolicy = Type.Object(
  {
    target_fingerprint: optional(Own),
    predicates: freeForm(
      `Conditions on a request (docs/policies.md); at most ${MAX_PREDICATE_BYTES} bytes as canonical JSON.`,
    ),
    default_action_on_failure: Type.String({
      description: "Action for a request that does not satisfy the policy.",
      [DOCUMENTED]: { enum: POLICY_ACTIONS },
    }),
    effective_from: optional(
      Type.String({ description: "Must be later than that of the active policy. Default: now.", format: "date-time" }),
    ),
    ...AUTH,
  },
  { title: "PublishRequestPolicy", description: "The policy, and a proof of its key unless there is a session." },
);

const POLICY = {
  target_fingerprint: Fingerprint,
  predicates: Predicates,
  default_action_on_failure: Action,
  effective_from: Timestamp,
  published_at: Timestamp,
  log_entry_id: EntryId,
  leaf_index: LeafIndex,
};

const RequestPolicy = Type.Object(POLICY, { title: "RequestPolicy" });

export const PolicyPublished = Type.Object(
  { ...POLICY, status: Type.Enum(["active", "scheduled"], { description: "Whether the policy is in force already." }) },
  { title: "RequestPolicyPublished" },
);

export const PolicyView = Type.Object(
  { target_fingerprint: Fingerprint, active: nullable(RequestPolicy), scheduled: nullable(RequestPolicy) },
  { title: "RequestPolicyView" },
);

// The inbox of a key: notifications about requests to it and by it, and about the end of its webhooks.

export const Notification = Type.Object(
  {
    id: Type.Integer({ description: "Unique in the inbox; later notifications have higher ones." }),
    kind: Type.Enum(NOTIFICATION_KINDS, {
      description:
        "The first two notify the target of a request, the next two its requester. `webhook_ended` notifies the owner of a " +
        "webhook subscription, or the successor of that key.",
    }),
    request_id: nullable(Type.String({ description: "UUID of the attestation request; null if it is not about one." })),
    responder_fingerprint: nullable(Fingerprint),
    webhook_id: Type.Optional(Type.Integer({ description: "`id` of the webhook subscription that has ended." })),
    reason: Type.Optional(
      Type.Enum(ENDED_REASONS, {
        description:
          "Why it has ended: its key is not active any more, its endpoint has failed for seven days, or has answered 410.",
      }),
    ),
    created_at: Timestamp,
    read: Type.Boolean({ description: "Whether it was marked as read." }),
  },
  { title: "Notification" },
);

export const NotificationPage = pageSchema(
  { notifications: Type.Array(Notification, { description: "Newest first." }) },
  "NotificationPage",
);

export const InboxQuery = Type.Object({
  unread: Type.Optional(
    Type.Enum(["true", "false"], { description: "`true`: only unread ones; `false`: only read ones; absent: all." }),
  ),
  ...PAGE_QUERY,
});

export const NotificationParams = Type.Object({ id: EntryId });
