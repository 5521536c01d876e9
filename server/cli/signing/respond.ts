/** `cairnlog respond`: accepts or declines a request for an attestation. */
import { CONNECTION_OPTIONS, report, withClient } from "../connection/connection.js";
import { text } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { UsageError } from "../line/usage.js";

const OPTIONS = {
  attestation: text("ID", "the attestation that was asked for; needed to accept"),
  reason: text("TEXT", "why, for everybody to read"),
  ...CONNECTION_OPTIONS,
} as const;

export const respond = subcommand({
  forms: ["REQUEST accept|decline [--key KEY.pem]"],
  about: `Answers a request in the name of KEY or of the session (cairnlog login), and checks the receipt. To accept, attest
first, and name the attestation: yours, the target's, or one by a key that has succeeded one of these and has signed that.
Anybody may answer, each key once. The status follows the target's answer, and the first one until then.`,
  options: OPTIONS,
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
    report(values, receipt, `${request_id} is ${status}${whose}: entry ${log_entry_id}`);
    return 0;
  },
});
