/**
 * `cairnlog webhook`: manages subscriptions, and runs a receiver that checks deliveries, for developers of receivers.
 */
import type { Subscribe, Webhook } from "../../client/index.js";
import { type Action, runAction } from "../actions.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS, readNumber } from "../connection.js";
import { chosen, none, only, required, type Subcommand } from "../usage.js";
import { LISTEN_OPTIONS, listenForDeliveries, readWebhookSecret } from "./webhook-listen.js";

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  url: { type: "string" },
  events: { type: "string" },
  "key-fingerprint": { type: "string" },
  "document-hash": { type: "string" },
  secret: LISTEN_OPTIONS.secret,
  "secret-file": LISTEN_OPTIONS["secret-file"],
} as const;

const ACTIONS: Readonly<Record<string, Action<typeof OPTIONS>>> = {
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
};

function line({ id, url, events, healthy, retry_count }: Webhook): string {
  const state = healthy ? "healthy" : `failing (${retry_count} in a row)`;
  return `${id} ${url} ${events.join(",") || "all events"} ${state}`;
}

const LISTEN = { listen: listenForDeliveries };

export const webhook: Subcommand = {
  help: `cairnlog webhook add --url URL [--events NAMES] --server URL [--key KEY.pem] [options]
cairnlog webhook list --server URL [--key KEY.pem] [options]
cairnlog webhook remove ID --server URL [--key KEY.pem] [options]
cairnlog webhook listen --port N (--secret SECRET | --secret-file FILE) [--host ADDRESS] [--json]

add, list and remove are about the subscriptions of KEY or of the session (cairnlog login).

listen checks the signature of every delivery it gets and prints it, until it is interrupted. A delivery that
holds is answered with 204, any other with 401. Compare your own receiver with it.

The service delivers to public addresses only, unless SERVICE_WEBHOOK_ALLOW_PRIVATE is on.

Options:
  --key KEY.pem            your private key; it stays here
  --url URL                add: where deliveries go
  --events NAMES           add: these events only, separated by commas (docs/webhooks.md)
  --key-fingerprint FP     add: events about this key only
  --document-hash HASH     add: events about this document only
  --secret SECRET          the secret of the subscription; other users of this machine can see it
  --secret-file FILE       a file that holds it
  --port N                 listen: TCP port; 0 takes a free one
  --host ADDRESS           listen: address to listen on (default: 127.0.0.1)
${CONNECTION_HELP};
                           listen: one line for each delivery, {valid, fault, id, timestamp, body}

Exit codes: 0 done, or interrupted; 1 refused, or could not listen; 2 the command was not understood.

Examples:
  cairnlog webhook add --url https://example.org/hook --secret-file webhook.secret --key me.pem --server http://127.0.0.1:8080
  cairnlog webhook listen --port 9000 --secret-file webhook.secret`,
  options: { ...OPTIONS, ...LISTEN_OPTIONS },
  actions: [...Object.keys(ACTIONS), ...Object.keys(LISTEN)],
  run: ([word, ...argv]) => {
    if (word === "listen") return listenForDeliveries(argv);
    chosen({ ...ACTIONS, ...LISTEN }, word);
    return runAction(ACTIONS, OPTIONS, [word!, ...argv]);
  },
};
