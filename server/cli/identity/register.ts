/** `cairnlog register`: registers a public key in the log, with a name. */
import { CONNECTION_OPTIONS, report, requireKey, withClient } from "../connection/connection.js";
import { readPublicKey } from "../files/public-key.js";
import { text } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { none, readTime, required } from "../line/usage.js";

const OPTIONS = {
  pseudonym: text("NAME", "your display name"),
  "public-key": text(
    "FILE.pem",
    "register this key of somebody else; KEY is then that of the operator or a trust anchor",
  ),
  expires: text("TIMESTAMP", "when the key expires (ISO 8601; default: never)"),
  ...CONNECTION_OPTIONS,
} as const;

export const register = subcommand({
  forms: ["--key KEY.pem --pseudonym NAME [--public-key FILE.pem]"],
  about: `Registers the public half of KEY and checks the receipt. With --public-key it registers that key of somebody else: so an
operator lets people in where not everybody may write (cairnlog writers).`,
  options: OPTIONS,
  examples: `cairnlog register --key me.pem --pseudonym Ada
cairnlog register --public-key ada.pub.pem --pseudonym Ada --key operator.pem`,
  async run(operands, values) {
    none(operands);
    requireKey(values);
    const options = {
      pseudonym: required(values.pseudonym, "--pseudonym"),
      expirationDate: readTime(values.expires, "--expires"),
    };
    const other = values["public-key"] === undefined ? undefined : readPublicKey(values["public-key"]).pem;
    const receipt = await withClient(values, ({ keys }) =>
      other === undefined ? keys.register(options) : keys.registerOther(other, options),
    );
    report(values, receipt, `${receipt.fingerprint} (${receipt.pseudonym}): entry ${receipt.log_entry_id}`);
    return 0;
  },
});
