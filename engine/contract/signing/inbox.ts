/** The inbox of a key: notifications about requests to it and by it, and about the end of its webhooks. */
import Type from "typebox";
import { ENDED_REASONS, NOTIFICATION_KINDS } from "../../verify/keys/contract.js";
import { EntryId, Fingerprint, nullable, PAGE_QUERY, pageSchema, Timestamp } from "../common.js";

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
