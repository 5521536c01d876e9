/**
 * `cairnlog webhook`: manages subscriptions, and runs a receiver that checks deliveries, for developers of receivers.
 */
import type { Subscribe, Webhook } from "../../client/index.js";
import { type Action, runAction } from "../connection/actions.js";
import { CONNECTION_OPTIONS, readNumber } from "../connection/connection.js";
import { subcommandWithActions, text } from "../line/subcommand.js";
import { none, only, required } from "../line/usage.js";
import { LISTEN_OPTIONS, listenForDeliveries, readWebhookSecret } from "./webhook-listen.js";

const OPTIONS = {
  url: text("URL", "where deliveries go"),
  events: text("NAMES", "these events only, separated by commas (docs/webhooks.md)"),
  "key-fingerprint": text("FP", "events about this key only"),
  "document-hash": text("HASH", "events about this document only"),
  secret: LISTEN_OPTIONS.secret,
  "secret-file": LISTEN_OPTIONS["secret-file"],
  ...CONNECTION_OPTIONS,
} as const;

const ACTIONS = {
  add: (names, values) => {
    none(names);
    const { events, "key-fingerprint": key_fingerprint, "document-hash": document_hash } = values;
    const isSigned = values.secret !== undefined || values["secret-file"] !== undefined;
    const subscription: Subscribe = {
      url: required(values.url, "--url"),
      ...(events === undefined ? {} : { events: events.split(",") as NonNullable<Subscribe["events"]> }),
      ...(key_fingerprint === undefined ? {} : { key_fingerprint }),
      ...(document_hash === undefined ? {} : { document_hash }),
      ...(isSigned ? { secret: readWebhookSecret(values) } : {}),
    };
    return async (client) => {
      const answer = await client.webhooks.create(subscription);
      return { answer, text: line(answer) };
    };
  },
  list: (names) => {
    none(names);
    return async (client) => {
      const answer = await client.webhooks.list();
      return { answer, text: answer.map(line).join("\n") || "none" };
    };
  },
  remove: (names) => {
    const id = readNumber(only(names, "ID"), "ID");
    return async (client) => {
      const answer = await client.webhooks.remove(id);
      return { answer, text: `${answer.id} gets no more deliveries` };
    };
  },
} satisfies Record<string, Action<typeof OPTIONS>>;

function line({ id, url, events, healthy, retry_count }: Webhook): string {
  const state = healthy ? "healthy" : `failing (${retry_count} in a row)`;
  return `${id} ${url} ${events.join(",") || "all events"} ${state}`;
}

export const webhook = subcommandWithActions({
  about: `Subscriptions to events, and a receiver that checks deliveries.

The service delivers to public addresses only, unless SERVICE_WEBHOOK_ALLOW_PRIVATE is on.`,
  options: { ...OPTIONS, ...LISTEN_OPTIONS },
  actions: {
    add: {
      form: "--url URL [--events NAMES] [--key KEY.pem]",
      about: "Subscribes KEY, or the session (cairnlog login), to events.",
      takes: [
        "url",
        "events",
        "key-fingerprint",
        "document-hash",
        "secret",
        "secret-file",
        "key",
        "passphrase-file",
        "server",
        "operator-key",
        "state",
      ],
    },
    list: {
      form: "[--key KEY.pem]",
      about: "Lists the subscriptions of KEY or of the session.",
      takes: ["key", "passphrase-file", "server", "operator-key", "state"],
    },
    remove: {
      form: "ID [--key KEY.pem]",
      about: "Ends a subscription.",
      takes: ["key", "passphrase-file", "server", "operator-key", "state"],
    },
    listen: {
      form: "--port N (--secret SECRET | --secret-file FILE) [--host ADDRESS]",
      about:
        "Checks the signature of every delivery it gets and prints it, until it is interrupted. A delivery that holds is answered with 204, any other with 401. Compare your own receiver with it.",
      takes: ["port", "host", "secret", "secret-file"],
    },
  },
  notes: "Exit codes: 0 done, or interrupted; 1 refused, or could not listen; 2 the command was not understood.",
  examples: `cairnlog webhook add --url https://example.org/hook --secret-file webhook.secret --key me.pem
cairnlog webhook listen --port 9000 --secret-file webhook.secret`,
  run: (operands, values, action) => {
    if (action !== "listen") return runAction(ACTIONS[action], operands, values);
    none(operands);
    return listenForDeliveries(values);
  },
});
