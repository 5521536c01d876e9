/** `cairnlog inbox`: notifications about requests to a key and by it, and about the end of its webhooks. */
import { type Action, listed, runAction } from "../actions.js";
import { CONNECTION_OPTIONS, readNumber } from "../connection.js";
import { flag } from "../line/options.js";
import { subcommandWithActions } from "../line/subcommand.js";
import { none, only } from "../usage.js";

const OPTIONS = { unread: flag("those only that are not marked as read"), ...CONNECTION_OPTIONS } as const;

const ACTIONS = {
  list: (names, { unread }) => {
    none(names);
    return (client) =>
      listed(
        client.inbox.list(unread ? { unread } : {}),
        ({ id, created_at, kind, request_id, responder_fingerprint: by, webhook_id, reason, read }) =>
          [
            id,
            created_at,
            kind,
            request_id ?? `webhook ${webhook_id}: ${reason}`,
            ...(by === null ? [] : [`by ${by}`]),
            ...(read ? [] : ["unread"]),
          ].join(" "),
      );
  },
  read: (names) => {
    const id = readNumber(only(names, "ID"), "ID");
    return async (client) => {
      const answer = await client.inbox.markRead(id);
      return { answer, text: `${answer.id} is read` };
    };
  },
} satisfies Record<string, Action<typeof OPTIONS>>;

export const inbox = subcommandWithActions({
  about:
    "Notifications about requests to a key and by it, and about the end of its webhooks. cairnlog respond answers a request.",
  options: OPTIONS,
  actions: {
    list: {
      form: "[--unread] [--key KEY.pem]",
      about: "Lists the notifications of KEY or of the session (cairnlog login), newest first.",
      takes: ["unread"],
    },
    read: { form: "ID [--key KEY.pem]", about: "Marks a notification as read." },
  },
  examples: "cairnlog inbox list --unread --key me.pem",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
