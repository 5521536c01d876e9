/** `cairnlog inbox`: notifications about requests to a key and by it, and about the end of its webhooks. */
import type { Client, Notification } from "../../client/index.js";
import { type Action, runAction, tabled } from "../connection/actions.js";
import { CONNECTION_OPTIONS, readNumber } from "../connection/connection.js";
import { flag } from "../line/options.js";
import { subcommandWithActions } from "../line/subcommand.js";
import { none, only } from "../line/usage.js";
import { Names, quoted } from "../printing/names.js";

const OPTIONS = { unread: flag("those only that are not marked as read"), ...CONNECTION_OPTIONS } as const;

const ACTIONS = {
  list: (names, { unread }) => {
    none(names);
    return (client) => {
      const names = new Names(client);
      return tabled(
        client.inbox.list(unread ? { unread } : {}),
        ["ID", "TIME", "READ", "REQUEST", "WHAT"],
        async (notification) => [
          `${notification.id}`,
          notification.created_at,
          notification.read ? "yes" : "no",
          notification.request_id ?? "-",
          await told(client, names, notification),
        ],
      );
    };
  },
  read: (names) => {
    const id = readNumber(only(names, "ID"), "ID");
    return async (client) => {
      const answer = await client.inbox.markRead(id);
      return { answer, text: `${answer.id} is read` };
    };
  },
} satisfies Record<string, Action<typeof OPTIONS>>;

/** One line of the inbox: who asks or answers, what, and why. */
async function told(client: Client, names: Names, notification: Notification): Promise<string> {
  const { kind, request_id, responder_fingerprint, webhook_id, reason } = notification;
  if (request_id === null) return `webhook ${webhook_id} has ended: ${reason}`;
  // The list stands without what one of its requests says.
  const request = await client.requests.find(request_id).catch(() => null);
  if (!request) return kind;
  const { requester_fingerprint, target_fingerprint, attestation_type, intent_statement, deadline, response } = request;
  const why = (text: string | null | undefined) => (text ? `: ${quoted(text)}` : "");
  const isToMe = kind === "attestation_request" || kind === "attestation_request_held";
  if (isToMe) {
    const held = kind === "attestation_request_held" ? " (held back by your policy)" : "";
    return `${await names.person(requester_fingerprint)} asks for ${attestation_type} until ${deadline}${held}${why(intent_statement)}`;
  }
  const decision = kind === "attestation_request_accepted" ? "accepted" : "declined";
  const who = await names.person(responder_fingerprint ?? target_fingerprint);
  return `${who} has ${decision} your request for ${attestation_type}${why(response?.reason)}`;
}

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
