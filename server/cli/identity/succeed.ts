/** `cairnlog succeed`: replaces a key by a new one. */
import { CONNECTION_OPTIONS, report, requireKey, withClient } from "../connection/connection.js";
import { fileSigner } from "../files/secrets.js";
import { flag, text } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { none, readTime, required } from "../line/usage.js";

const OPTIONS = {
  "new-key": text("NEW.pem", "its successor, not registered yet (cairnlog keygen); it stays here"),
  "new-passphrase-file": text("FILE", "the passphrase of NEW.pem, where it is encrypted"),
  recovery: flag("OLD has expired"),
  pseudonym: text("NAME", "display name of the new key (default: that of the old one)"),
  expires: text("TIMESTAMP", "when the new key expires (ISO 8601; default: never)"),
  ...CONNECTION_OPTIONS,
  key: text("OLD.pem", "the key to replace; it stays here"),
} as const;

export const succeed = subcommand({
  forms: ["--key OLD.pem --new-key NEW.pem"],
  about: "Makes NEW the successor of OLD, signed by both, and checks the receipt. OLD signs nothing new from then on.",
  options: OPTIONS,
  examples: "cairnlog succeed --key me.pem --new-key me2.pem",
  async run(operands, values) {
    none(operands);
    requireKey(values);
    const successor = await fileSigner(required(values["new-key"], "--new-key"), values["new-passphrase-file"]);
    const { pseudonym, recovery } = values;
    const expirationDate = readTime(values.expires, "--expires");
    const receipt = await withClient(values, (client) =>
      client.keys.succeed(successor, { pseudonym, expirationDate, recovery }),
    );
    const { old_fingerprint, new_fingerprint, log_entry_id } = receipt;
    report(values, receipt, `${old_fingerprint} is succeeded by ${new_fingerprint}: entry ${log_entry_id}`);
    return 0;
  },
});
