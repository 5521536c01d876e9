/** `cairnlog endorse`: offers, accepts, withdraws, revokes and lists endorsements. */

import { membersIn } from "../../../engine/verify/events/withheld.js";
import type { Client, Endorsement, EndorsementReceipt, Offer } from "../../client/index.js";
import { type Action, type Done, runAction, tabled } from "../connection/actions.js";
import { CONNECTION_OPTIONS, readNumber, requireKeyFile } from "../connection/connection.js";
import { subcommandWithActions, text } from "../line/subcommand.js";
import { only, required, timeOption, UsageError } from "../line/usage.js";
import { Names } from "../printing/names.js";

const OPTIONS = {
  category: text("CATEGORY", "human: you know the person; institutional: an organisation verified it"),
  "valid-until": text("DATE", "last day of the endorsement"),
  institution: text("NAME", "name of the organisation"),
  note: text("TEXT", "why, for everybody to read"),
  reason: text("TEXT", "what happened"),
  evidence: text("TEXT", "what shows it"),
  ...CONNECTION_OPTIONS,
  key: text("KEY.pem", "the key that acts; it stays here"),
} as const;

const CATEGORIES: Readonly<Record<string, Offer["category"]>> = {
  human: "x-service:human_attestation",
  institutional: "x-service:institutional_endorsement",
};

const ACTIONS = {
  offer: (names, values) => {
    const endorsed_fingerprint = only(names, "the FINGERPRINT to endorse");
    const category = CATEGORIES[required(values.category, "--category")];
    if (!category) throw new UsageError(`--category must be ${Object.keys(CATEGORIES).join(" or ")}`);
    requireKeyFile(values);
    const { institution } = values;
    const validUntil = timeOption(values["valid-until"], "--valid-until");
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
  accept: (names, values) => {
    const { note } = values;
    const offer = readNumber(only(names, "OFFER"), "OFFER");
    requireKeyFile(values);
    return (client) => client.endorsements.accept(offer, note).then(changed);
  },
  withdraw: (names, values) => {
    const offer = readNumber(only(names, "OFFER"), "OFFER");
    const note = required(values.note, "--note");
    requireKeyFile(values);
    return async (client) => {
      const { entry } = await client.log.entry(offer);
      const endorsed = membersIn(entry).endorsed_key_fingerprint;
      if (typeof endorsed !== "string") throw new UsageError(`entry ${offer} is no offer of an endorsement`);
      return client.endorsements.withdraw(offer, endorsed, note).then(changed);
    };
  },
  "revoke-acceptance": (names, values) => {
    const offer = readNumber(only(names, "OFFER"), "OFFER");
    const note = required(values.note, "--note");
    requireKeyFile(values);
    return (client) => client.endorsements.revokeAcceptance(offer, note).then(changed);
  },
  alert: (names, values) => {
    const fingerprint = only(names, "FINGERPRINT");
    const reason = required(values.reason, "--reason");
    requireKeyFile(values);
    return async (client) => {
      const receipt = await client.endorsements.alert(fingerprint, reason, values.evidence);
      return { answer: receipt, text: `warned of ${fingerprint}: entry ${receipt.log_entry.id}` };
    };
  },
  received: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return (client) => endorsements(client, client.endorsements.received(fingerprint), "endorser_fingerprint");
  },
  issued: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return (client) => endorsements(client, client.endorsements.issued(fingerprint), "endorsed_fingerprint");
  },
  alerts: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return (client: Client) => {
      const names = new Names(client);
      const heading = ["ENTRY", "FILED", "BY KEY", "NAME", "REASON"];
      return tabled(client.endorsements.alerts(fingerprint), heading, async (alert) => [
        `${alert.alert_entry_id}`,
        alert.filed_at,
        alert.endorser_fingerprint,
        await names.of(alert.endorser_fingerprint),
        alert.reason,
      ]);
    };
  },
} satisfies Record<string, Action<typeof OPTIONS>>;

function changed(receipt: EndorsementReceipt): Done {
  const { endorsement, log_entry } = receipt;
  const text = `offer ${endorsement.offer_entry_id} is now ${endorsement.status}: entry ${log_entry.id}`;
  return { answer: receipt, text };
}

/** @param other the member with the key at the other end */
function endorsements(
  client: Client,
  listed: AsyncIterable<Endorsement>,
  other: "endorser_fingerprint" | "endorsed_fingerprint",
): Promise<Done> {
  const names = new Names(client);
  const key = other === "endorser_fingerprint" ? "BY KEY" : "OF KEY";
  return tabled(listed, ["OFFER", "STATUS", "CATEGORY", key, "NAME"], async (endorsement) => [
    `${endorsement.offer_entry_id}`,
    endorsement.status,
    endorsement.category,
    endorsement[other],
    await names.of(endorsement[other]),
  ]);
}

export const endorse = subcommandWithActions({
  about: "Endorsements of keys by keys. What changes one is signed by KEY, and its receipt is checked.",
  options: OPTIONS,
  actions: {
    offer: {
      form: "FINGERPRINT --category human|institutional --key KEY.pem",
      about: "Offers an endorsement to a key.",
      takes: ["category", "valid-until", "institution", "key", "passphrase-file"],
    },
    accept: {
      form: "OFFER --key KEY.pem [--note TEXT]",
      about: "Accepts an offer; OFFER is the number of its log entry.",
      takes: ["note", "key", "passphrase-file"],
    },
    withdraw: {
      form: "OFFER --note TEXT --key KEY.pem",
      about: "Withdraws an offer, or ends the endorsement.",
      takes: ["note", "key", "passphrase-file"],
    },
    "revoke-acceptance": {
      form: "OFFER --note TEXT --key KEY.pem",
      about: "Takes an acceptance back.",
      takes: ["note", "key", "passphrase-file"],
    },
    alert: {
      form: "FINGERPRINT --reason TEXT --key KEY.pem",
      about: "Warns that a key is compromised, which KEY endorsed or was endorsed by.",
      takes: ["reason", "evidence", "key", "passphrase-file"],
    },
    received: { form: "FINGERPRINT", about: "Lists the endorsements of a key." },
    issued: { form: "FINGERPRINT", about: "Lists the endorsements by a key." },
    alerts: { form: "FINGERPRINT", about: "Lists the warnings about a key." },
  },
  examples: "cairnlog endorse accept 12 --key me.pem",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
