/** `cairnlog endorse`: offers endorsements, accepts them, and takes either back. */
import type { Client, Offer } from "../client/index.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS, readNumber, report, withClient } from "./connection.js";
import { readArguments, required, type Subcommand, UsageError } from "./usage.js";

const CATEGORIES: Readonly<Record<string, Offer["category"]>> = {
  human: "x-service:human_attestation",
  institutional: "x-service:institutional_endorsement",
};

interface Values {
  readonly category?: string | undefined;
  readonly "valid-until"?: string | undefined;
  readonly institution?: string | undefined;
  readonly note?: string | undefined;
}

/** What was done, for a program and for a reader. */
interface Done {
  readonly answer: unknown;
  readonly text: string;
}

/** Action → what it does with what stands behind it. Each reads its arguments before anything is sent. */
const ACTIONS: Readonly<
  Record<string, (target: string | undefined, values: Values) => (client: Client) => Promise<Done>>
> = {
  offer: (target, values) => {
    const endorsed_fingerprint = required(target, "the FINGERPRINT to endorse");
    const category = CATEGORIES[required(values.category, "--category")];
    if (!category) throw new UsageError(`--category must be ${Object.keys(CATEGORIES).join(" or ")}`);
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
  accept: (target, { note }) => {
    const offer = readNumber(target, "OFFER");
    return (client) => client.endorsements.accept(offer, note).then(describe);
  },
  withdraw: (target, values) => {
    const offer = readNumber(target, "OFFER");
    const note = required(values.note, "--note");
    return async (client) => {
      const { entry } = await client.log.entry(offer);
      const endorsed = entry.payload.endorsed_key_fingerprint;
      if (typeof endorsed !== "string") throw new UsageError(`entry ${offer} is no offer of an endorsement`);
      return client.endorsements.withdraw(offer, endorsed, note).then(describe);
    };
  },
  "revoke-acceptance": (target, values) => {
    const offer = readNumber(target, "OFFER");
    const note = required(values.note, "--note");
    return (client) => client.endorsements.revokeAcceptance(offer, note).then(describe);
  },
};

function describe(receipt: Awaited<ReturnType<Client["endorsements"]["accept"]>>): Done {
  const { endorsement, log_entry } = receipt;
  const text = `offer ${endorsement.offer_entry_id} is now ${endorsement.status}: entry ${log_entry.id}`;
  return { answer: receipt, text };
}

export const endorse: Subcommand = {
  summary: "offer, accept, withdraw endorsements",
  help: `cairnlog endorse offer FINGERPRINT --category human|institutional --key KEY.pem --server URL [options]
cairnlog endorse accept OFFER --key KEY.pem --server URL [--note TEXT] [options]
cairnlog endorse withdraw OFFER --note TEXT --key KEY.pem --server URL [options]
cairnlog endorse revoke-acceptance OFFER --note TEXT --key KEY.pem --server URL [options]

Each is signed by KEY and its receipt is checked. OFFER is the number of the offer's log entry.

Options:
  --key KEY.pem            the key that acts; it stays here
  --category CATEGORY      human: you know the person; institutional: an organisation verified it
  --valid-until DATE       last day of the endorsement
  --institution NAME       name of the organisation
  --note TEXT              why
${CONNECTION_HELP}

Example:
  cairnlog endorse accept 12 --key me.pem --server http://127.0.0.1:8080`,
  async run([action = "", ...argv]) {
    const prepare = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
    if (!prepare) throw new UsageError(`say what to do: ${Object.keys(ACTIONS).join(", ")}`);
    const { values, positionals } = readArguments(
      argv,
      {
        ...CONNECTION_OPTIONS,
        category: { type: "string" },
        "valid-until": { type: "string" },
        institution: { type: "string" },
        note: { type: "string" },
      },
      true,
    );
    if (positionals.length > 1) throw new UsageError(`${positionals[1]} is one argument too many`);
    required(values.key, "--key");
    const { answer, text } = await withClient(values, prepare(positionals[0], values));
    report(values, answer, text);
    return 0;
  },
};
