/** The inbox of a key: notifications about requests to it and by it. */
import Type from "typebox";
import { NOTIFICATION_KINDS } from "../../../engine/verify/contract.js";
import { EntryId, PAGE_QUERY, pageOf, Timestamp } from "../common.js";

export const Notification = Type.Object(
  {
    id: Type.Integer({ description: "Also the id of the log entry that it is about." }),
    kind: Type.Enum(NOTIFICATION_KINDS, { description: "The first two notify the target, the others the requester." }),
    request_id: Type.String({ description: "UUID of the attestation request." }),
    created_at: Timestamp,
    read: Type.Boolean({ description: "Whether it was marked as read." }),
  },
  { title: "Notification" },
);

export const NotificationPage = pageOf(
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
