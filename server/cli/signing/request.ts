/** `cairnlog request`: asks another key for an attestation. */
import { CONNECTION_OPTIONS, report, withClient } from "../connection/connection.js";
import { readObject } from "../files/objects.js";
import { text } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { readTime, required, UsageError } from "../line/usage.js";

const OPTIONS = {
  type: text("TYPE", "type of the attestation"),
  intent: text("TEXT", "what it is for"),
  claims: text("FILE.json", "an object that says more; - reads standard input"),
  deadline: text("TIME", "a day or an ISO 8601 time, at most 90 days ahead (default: 14 days)"),
  ...CONNECTION_OPTIONS,
} as const;

/** The end of a day, where only a day is given. */
const withTime = (time: string): string => (/^\d{4}-\d\d-\d\d$/.test(time) ? `${time}T23:59:59Z` : time);

export const request = subcommand({
  forms: ["FINGERPRINT --type TYPE [--key KEY.pem]"],
  about: `Asks the key FINGERPRINT for an attestation, in the name of KEY or of the session (cairnlog login), and checks the
receipt. The request and everything in it is public.`,
  options: OPTIONS,
  examples: "cairnlog request sha256:… --type peer_review --key me.pem",
  async run(positionals, values) {
    if (positionals.length !== 1) throw new UsageError("name one FINGERPRINT to ask");
    const { intent, claims } = values;
    const deadline = readTime(values.deadline, "--deadline");
    const asked = {
      target_fingerprint: positionals[0]!,
      attestation_type: required(values.type, "--type"),
      ...(intent === undefined ? {} : { intent_statement: intent }),
      ...(claims === undefined ? {} : { claims: readObject(claims) }),
      ...(deadline === undefined ? {} : { deadline: withTime(deadline) }),
    };
    const receipt = await withClient(values, (client) => client.requests.create(asked));
    const { request_id, status, deadline: until, log_entry_id } = receipt;
    report(values, receipt, `${request_id} is ${status} until ${until}: entry ${log_entry_id}`);
    return 0;
  },
});
