/** `cairnlog revoke`: disables a key for ever. */
import { CONNECTION_OPTIONS, report, withClient } from "../connection/connection.js";
import { flag, text } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { none, UsageError } from "../line/usage.js";

const OPTIONS = {
  yes: flag("you mean it"),
  ...CONNECTION_OPTIONS,
  key: text("KEY.pem", "the key to revoke; it stays here"),
} as const;

export const revoke = subcommand({
  forms: ["--yes [--key KEY.pem]"],
  about: `Revokes KEY, or without one the key of the session (cairnlog login), and checks the receipt. Nothing takes that
back. What the key signed before stays verifiable.`,
  options: OPTIONS,
  examples: "cairnlog revoke --yes --key me.pem",
  async run(operands, values) {
    none(operands);
    if (!values.yes) throw new UsageError("nothing takes a revocation back: say --yes");
    const receipt = await withClient(values, (client) => client.keys.revoke());
    report(values, receipt, `${receipt.fingerprint} is revoked: entry ${receipt.log_entry_id}`);
    return 0;
  },
});
