/** `cairnlog succeed`: replaces a key by a new one. */
import { CONNECTION_HELP, CONNECTION_OPTIONS, report, withClient } from "../connection.js";
import { readArguments, required, type Subcommand } from "../usage.js";
import { fileSigner } from "./secrets.js";

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  "new-key": { type: "string" },
  "new-passphrase-file": { type: "string" },
  recovery: { type: "boolean", default: false },
  pseudonym: { type: "string" },
  expires: { type: "string" },
} as const;

export const succeed: Subcommand = {
  help: `cairnlog succeed --key OLD.pem --new-key NEW.pem --server URL [options]

Makes NEW the successor of OLD, signed by both, and checks the receipt. OLD signs nothing new from then on.

Options:
  --key OLD.pem            the key to replace; it stays here
  --new-key NEW.pem        its successor, not registered yet (cairnlog keygen); it stays here
  --new-passphrase-file FILE  the passphrase of NEW.pem, where it is encrypted
  --recovery               OLD has expired
  --pseudonym NAME         display name of the new key (default: that of the old one)
  --expires TIMESTAMP      when the new key expires (ISO 8601; default: never)
${CONNECTION_HELP}

Example:
  cairnlog succeed --key me.pem --new-key me2.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  async run(argv) {
    const { values } = readArguments(argv, OPTIONS);
    required(values.key, "--key");
    const successor = await fileSigner(required(values["new-key"], "--new-key"), values["new-passphrase-file"]);
    const { pseudonym, expires: expirationDate, recovery } = values;
    const receipt = await withClient(values, (client) =>
      client.keys.succeed(successor, { pseudonym, expirationDate, recovery }),
    );
    const { old_fingerprint, new_fingerprint, log_entry_id } = receipt;
    report(values, receipt, `${old_fingerprint} is succeeded by ${new_fingerprint}: entry ${log_entry_id}`);
    return 0;
  },
};
