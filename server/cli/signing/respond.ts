/** `cairnlog respond`: accepts or declines a request for an attestation. */
import { CONNECTION_HELP, CONNECTION_OPTIONS, report, withClient } from "../connection.js";
import { readArguments, type Subcommand, UsageError } from "../usage.js";

const OPTIONS = { ...CONNECTION_OPTIONS, attestation: { type: "string" }, reason: { type: "string" } } as const;

export const respond: Subcommand = {
  help: `cairnlog respond REQUEST accept|decline --server URL [--key KEY.pem] [options]

Answers a request in the name of KEY or of the session (cairnlog login), and checks the receipt. To accept, attest
first, and name the attestation.

Options:
  --key KEY.pem            your private key; it stays here
  --attestation ID         the attestation that was asked for; needed to accept
  --reason TEXT            why, for everybody to read
${CONNECTION_HELP}

Example:
  cairnlog respond 0d9e6f0a-… decline --reason "Not my field" --key me.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  async run(argv) {
    const { values, positionals } = readArguments(argv, OPTIONS, true);
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
    report(values, receipt, `${receipt.request_id} is ${receipt.status}: entry ${receipt.log_entry_id}`);
    return 0;
  },
};
