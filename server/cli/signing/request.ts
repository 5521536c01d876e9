/** `cairnlog request`: asks another key for an attestation. */
import { CONNECTION_HELP, CONNECTION_OPTIONS, report, withClient } from "../connection.js";
import { readObject } from "../objects.js";
import { readArguments, required, type Subcommand, UsageError } from "../usage.js";

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  type: { type: "string" },
  intent: { type: "string" },
  claims: { type: "string" },
  deadline: { type: "string" },
} as const;

export const request: Subcommand = {
  help: `cairnlog request FINGERPRINT --type TYPE --server URL [--key KEY.pem] [options]

Asks the key FINGERPRINT for an attestation, in the name of KEY or of the session (cairnlog login), and checks the
receipt. The request and everything in it is public.

Options:
  --key KEY.pem            your private key; it stays here
  --type TYPE              type of the attestation
  --intent TEXT            what it is for
  --claims FILE.json       an object that says more; - reads standard input
  --deadline TIMESTAMP     ISO 8601, at most 90 days ahead (default: 14 days)
${CONNECTION_HELP}

Example:
  cairnlog request sha256:… --type peer_review --key me.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  async run(argv) {
    const { values, positionals } = readArguments(argv, OPTIONS, true);
    if (positionals.length !== 1) throw new UsageError("name one FINGERPRINT to ask");
    const { intent, claims, deadline } = values;
    const asked = {
      target_fingerprint: positionals[0]!,
      attestation_type: required(values.type, "--type"),
      ...(intent === undefined ? {} : { intent_statement: intent }),
      ...(claims === undefined ? {} : { claims: readObject(claims) }),
      ...(deadline === undefined ? {} : { deadline }),
    };
    const receipt = await withClient(values, (client) => client.requests.create(asked));
    const { request_id, status, deadline: until, log_entry_id } = receipt;
    report(values, receipt, `${request_id} is ${status} until ${until}: entry ${log_entry_id}`);
    return 0;
  },
};
