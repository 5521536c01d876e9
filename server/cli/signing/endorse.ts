/** `cairnlog endorse`: offers, accepts, withdraws, revokes and lists endorsements. */
import type { Client, Endorsement, EndorsementReceipt, Offer } from "../../client/index.js";
import { type Action, type Done, listed, runAction } from "../actions.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS, readNumber } from "../connection.js";
import { only, required, type Subcommand, UsageError } from "../usage.js";

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  category: { type: "string" },
  "valid-until": { type: "string" },
  institution: { type: "string" },
  note: { type: "string" },
  reason: { type: "string" },
  evidence: { type: "string" },
} as const;

const CATEGORIES: Readonly<Record<string, Offer["category"]>> = {
  human: "x-service:human_attestation",
  institutional: "x-service:institutional_endorsement",
};

const ACTIONS: Readonly<Record<string, Action<typeof OPTIONS>>> = {
  offer: (names, values) => {
    const endorsed_fingerprint = only(names, "the FINGERPRINT to endorse");
    const category = CATEGORIES[required(values.category, "--category")];
    if (!category) throw new UsageError(`--category must be ${Object.keys(CATEGORIES).join(" or ")}`);
    required(values.key, "--key");
    const { institution, "valid-until": validUntil } = values;
    const offer: Offer = {
      endorsed_fingerprint,
      category,
      ...(validUntil === undefined ? {} : { valid_until: validUntil }),
      ...(institution === undefined ? {} : { institutional_metadata: { name: institution } }),
    };
    return async (client) => {
      const { entry } = await client.endorsements.offer(offer);
      return { answer: entry, text: `offered to ${endorsed_fingerprint}: entry ${entry.id}` };
    };
  },
  accept: (names, { note, key }) => {
    const offer = readNumber(only(names, "OFFER"), "OFFER");
    required(key, "--key");
    return (client) => client.endorsements.accept(offer, note).then(changed);
  },
  withdraw: (names, values) => {
    const offer = readNumber(only(names, "OFFER"), "OFFER");
    const note = required(values.note, "--note");
    required(values.key, "--key");
    return async (client) => {
      const { entry } = await client.log.entry(offer);
      const endorsed = entry.payload.endorsed_key_fingerprint;
      if (typeof endorsed !== "string") throw new UsageError(`entry ${offer} is no offer of an endorsement`);
      return client.endorsements.withdraw(offer, endorsed, note).then(changed);
    };
  },
  "revoke-acceptance": (names, values) => {
    const offer = readNumber(only(names, "OFFER"), "OFFER");
    const note = required(values.note, "--note");
    required(values.key, "--key");
    return (client) => client.endorsements.revokeAcceptance(offer, note).then(changed);
  },
  alert: (names, values) => {
    const fingerprint = only(names, "FINGERPRINT");
    const reason = required(values.reason, "--reason");
    required(values.key, "--key");
    return async (client) => {
      const receipt = await client.endorsements.alert(fingerprint, reason, values.evidence);
      return { answer: receipt, text: `warned of ${fingerprint}: entry ${receipt.log_entry.id}` };
    };
  },
  received: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return (client) => listed(client.endorsements.received(fingerprint), line);
  },
  issued: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return (client) => listed(client.endorsements.issued(fingerprint), line);
  },
  alerts: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return (client: Client) =>
      listed(client.endorsements.alerts(fingerprint), ({ alert_entry_id, endorser_fingerprint, filed_at, reason }) =>
        [alert_entry_id, filed_at, endorser_fingerprint, reason].join(" "),
      );
  },
};

function changed(receipt: EndorsementReceipt): Done {
  const { endorsement, log_entry } = receipt;
  const text = `offer ${endorsement.offer_entry_id} is now ${endorsement.status}: entry ${log_entry.id}`;
  return { answer: receipt, text };
}

function line({ offer_entry_id, endorser_fingerprint, endorsed_fingerprint, category, status }: Endorsement): string {
  return `${offer_entry_id} ${status} ${category} ${endorser_fingerprint} → ${endorsed_fingerprint}`;
}

export const endorse: Subcommand = {
  help: `cairnlog endorse offer FINGERPRINT --category human|institutional --key KEY.pem --server URL [options]
cairnlog endorse accept OFFER --key KEY.pem --server URL [--note TEXT] [options]
cairnlog endorse withdraw OFFER --note TEXT --key KEY.pem --server URL [options]
cairnlog endorse revoke-acceptance OFFER --note TEXT --key KEY.pem --server URL [options]
cairnlog endorse alert FINGERPRINT --reason TEXT --key KEY.pem --server URL [options]
cairnlog endorse received|issued|alerts FINGERPRINT --server URL [options]

The first five are signed by KEY and their receipts are checked. OFFER is the number of the offer's log entry. alert
warns that a key is compromised, which KEY endorsed or was endorsed by. The last three tell what the service has.

Options:
  --key KEY.pem            the key that acts; it stays here
  --category CATEGORY      human: you know the person; institutional: an organisation verified it
  --valid-until DATE       last day of the endorsement
  --institution NAME       name of the organisation
  --note TEXT              why
  --reason TEXT            alert: what happened
  --evidence TEXT          alert: what shows it
${CONNECTION_HELP}

Example:
  cairnlog endorse accept 12 --key me.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  actions: Object.keys(ACTIONS),
  run: (argv) => runAction(ACTIONS, OPTIONS, argv),
};
