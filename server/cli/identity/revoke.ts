/** `cairnlog revoke`: disables a key for ever. */
import { CONNECTION_HELP, CONNECTION_OPTIONS, report, withClient } from "../connection.js";
import { readArguments, type Subcommand, UsageError } from "../usage.js";

const OPTIONS = { ...CONNECTION_OPTIONS, yes: { type: "boolean", default: false } } as const;

export const revoke: Subcommand = {
  help: `cairnlog revoke --yes --server URL [--key KEY.pem] [options]

Revokes KEY, or without one the key of the session (cairnlog login), and checks the receipt. Nothing takes that
back. What the key signed before stays verifiable.

Options:
  --yes                    you mean it
  --key KEY.pem            the key to revoke; it stays here
${CONNECTION_HELP}

Example:
  cairnlog revoke --yes --key me.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  async run(argv) {
    const { values } = readArguments(argv, OPTIONS);
    if (!values.yes) throw new UsageError("nothing takes a revocation back: say --yes");
    const receipt = await withClient(values, (client) => client.keys.revoke());
    report(values, receipt, `${receipt.fingerprint} is revoked: entry ${receipt.log_entry_id}`);
    return 0;
  },
};
