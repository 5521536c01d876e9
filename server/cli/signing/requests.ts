/** `cairnlog request`, `respond`, `inbox`: requests for attestations, and what became of them. */

import type { Client, Notification } from "../../client/index.js";
import { type Action, runAction, tabled } from "../connection/actions.js";
import { CONNECTION_OPTIONS, printAnswer, readNumber, withClient } from "../connection/connection.js";
import { readObject } from "../files/objects.js";
import { flag, subcommand, subcommandWithActions, text } from "../line/subcommand.js";
import { none, only, required, timeOption, UsageError } from "../line/usage.js";
import { Names, quoted } from "../printing/names.js";

/** The end of a day, where only a day is given. */
const withTime = (time: string): string => (/^\d{4}-\d\d-\d\d$/.test(time) ? `${time}T23:59:59Z` : time);

export const request = subcommand({
  forms: ["FINGERPRINT --type TYPE [--key KEY.pem]"],
  about: `Asks the key FINGERPRINT for an attestation, in the name of KEY or of the session (cairnlog login), and checks the
receipt. The request and everything in it is public.`,
  options: {
    type: text("TYPE", "type of the attestation"),
    intent: text("TEXT", "what it is for"),
    claims: text("FILE.json", "an object that says more; - reads standard input"),
    deadline: text("TIME", "a day or an ISO 8601 time, at most 90 days ahead (default: 14 days)"),
    ...CONNECTION_OPTIONS,
  },
  examples: "cairnlog request sha256:… --type peer_review --key me.pem",
  async run(positionals, values) {
    if (positionals.length !== 1) throw new UsageError("name one FINGERPRINT to ask");
    const { intent, claims } = values;
    const deadline = timeOption(values.deadline, "--deadline");
    const asked = {
      target_fingerprint: positionals[0]!,
      attestation_type: required(values.type, "--type"),
      ...(intent === undefined ? {} : { intent_statement: intent }),
      ...(claims === undefined ? {} : { claims: readObject(claims) }),
      ...(deadline === undefined ? {} : { deadline: withTime(deadline) }),
    };
    const receipt = await withClient(values, (client) => client.requests.create(asked));
    const { request_id, status, deadline: until, log_entry_id } = receipt;
    printAnswer(values, receipt, `${request_id} is ${status} until ${until}: entry ${log_entry_id}`);
    return 0;
  },
});

export const respond = subcommand({
  forms: ["REQUEST accept|decline [--key KEY.pem]"],
  about: `Answers a request in the name of KEY or of the session (cairnlog login), and checks the receipt. To accept, attest
first, and name the attestation: yours, the target's, or one by a key that has succeeded one of these and has signed that.
Anybody may answer, each key once. The status follows the target's answer, and the first one until then.`,
  options: {
    attestation: text("ID", "the attestation that was asked for; needed to accept"),
    reason: text("TEXT", "why, for everybody to read"),
    ...CONNECTION_OPTIONS,
  },
  examples: 'cairnlog respond 0d9e6f0a-… decline --reason "Not my field" --key me.pem',
  async run(positionals, values) {
    const [id, decision, more] = positionals;
    if (id === undefined || more !== undefined || (decision !== "accept" && decision !== "decline"))
      throw new UsageError("name one REQUEST, and accept or decline");
    const { attestation, reason } = values;
    if (decision === "accept" && attestation === undefined) throw new UsageError("--attestation is missing");
    const answer = {
      decision,
      ...(attestation === undefined ? {} : { attestation_id: attestation }),
      ...(reason === undefined ? {} : { reason }),
    } as const;
    const receipt = await withClient(values, (client) => client.requests.respond(id, answer));
    const { request_id, status, log_entry_id } = receipt;
    const isFollowed = status === (decision === "accept" ? "accepted" : "declined");
    const whose = isFollowed ? "" : ", as its target or somebody before you has answered";
    printAnswer(values, receipt, `${request_id} is ${status}${whose}: entry ${log_entry_id}`);
    return 0;
  },
});

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
  const { requester_fingerprint, target_fingerprint, attestation_type, intent_statement, deadline, responses } =
    request;
  const why = (text: string | null | undefined) => (text ? `: ${quoted(text)}` : "");
  const isToMe = kind === "attestation_request" || kind === "attestation_request_held";
  if (isToMe) {
    const held = kind === "attestation_request_held" ? " (held back by your policy)" : "";
    return `${await names.person(requester_fingerprint)} asks for ${attestation_type} until ${deadline}${held}${why(intent_statement)}`;
  }
  const decision = kind === "attestation_request_accepted" ? "accepted" : "declined";
  const by = responder_fingerprint ?? target_fingerprint;
  // Anybody may answer: nobody's reason is another's.
  const answer = responses.find((one) => one.responder_fingerprint === by);
  return `${await names.person(by)} has ${decision} your request for ${attestation_type}${why(answer?.reason)}`;
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
