/** `cairnlog register`: registers a public key in the log, with a name. */
import { CONNECTION_OPTIONS, report, requireKey, withClient } from "../connection.js";
import { text } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { none, readTime, required } from "../usage.js";

const OPTIONS = {
  pseudonym: text("NAME", "your display name"),
  expires: text("TIMESTAMP", "when the key expires (ISO 8601; default: never)"),
  ...CONNECTION_OPTIONS,
} as const;

export const register = subcommand({
  forms: ["--key KEY.pem --pseudonym NAME"],
  about: "Registers the public half of KEY and checks the receipt.",
  options: OPTIONS,
  examples: "cairnlog register --key me.pem --pseudonym Ada",
  async run(operands, values) {
    none(operands);
    requireKey(values);
    const options = {
      pseudonym: required(values.pseudonym, "--pseudonym"),
      expirationDate: readTime(values.expires, "--expires"),
    };
    const receipt = await withClient(values, (client) => client.keys.register(options));
    report(values, receipt, `${receipt.fingerprint} (${receipt.pseudonym}): entry ${receipt.log_entry_id}`);
    return 0;
  },
});
