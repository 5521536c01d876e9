/** `cairnlog register`: registers a public key in the log, with a name. */
import { CONNECTION_HELP, CONNECTION_OPTIONS, report, withClient } from "../connection.js";
import { readArguments, required, type Subcommand } from "../usage.js";

const OPTIONS = { ...CONNECTION_OPTIONS, pseudonym: { type: "string" }, expires: { type: "string" } } as const;

export const register: Subcommand = {
  help: `cairnlog register --key KEY.pem --pseudonym NAME --server URL [options]

Registers the public half of KEY and checks the receipt.

Options:
  --key KEY.pem            your private key; it stays here
  --pseudonym NAME         your display name
  --expires TIMESTAMP      when the key expires (ISO 8601; default: never)
${CONNECTION_HELP}

Example:
  cairnlog register --key me.pem --pseudonym Ada --server http://127.0.0.1:8080`,
  options: OPTIONS,
  async run(argv) {
    const { values } = readArguments(argv, OPTIONS);
    required(values.key, "--key");
    const options = { pseudonym: required(values.pseudonym, "--pseudonym"), expirationDate: values.expires };
    const receipt = await withClient(values, (client) => client.keys.register(options));
    report(values, receipt, `${receipt.fingerprint} (${receipt.pseudonym}): entry ${receipt.log_entry_id}`);
    return 0;
  },
};
