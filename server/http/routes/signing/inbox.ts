/** The inbox of the session's key. Nobody else can read it: notifications are private. */
import type { Served } from "../../../../engine/registry/registry.js";
import { InboxQuery, Notification, NotificationPage, NotificationParams } from "../../../wire/signing/inbox.js";
import type { Gate } from "../../gate.js";
import { type Route, route } from "../../route/route.js";

export function inboxRoutes({ inbox }: Pick<Served, "inbox">, gate: Gate): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/inbox",
      summary: "Notifications of the session's key, newest first",
      proving: "session",
      authorize: (asking) => gate.sessionKey(asking),
      query: InboxQuery,
      answer: NotificationPage,
      refusals: [401, 403],
      limit: "general",
      handle: ({ query: { page, per_page: perPage, unread }, proof }) =>
        inbox.list(proof.fingerprint, {
          page,
          perPage,
          ...(unread === undefined ? {} : { unread: unread === "true" }),
        }),
    }),
    route({
      method: "POST",
      path: "/api/v1/inbox/{id}/read",
      summary: "Mark a notification as read",
      proving: "session",
      authorize: (asking) => gate.sessionKey(asking),
      params: NotificationParams,
      answer: Notification,
      refusals: [401, 403, 404],
      limit: "general",
      handle: ({ params, proof, request }) => inbox.markRead(proof.fingerprint, params.id, request.client),
    }),
  ];
}
