/** `cairnlog register`, `succeed`, `revoke`: from the registration of a key to its end. `cairnlog writers`: who may write. */
import {
  CONNECTION_OPTIONS,
  printAnswer,
  READING_OPTIONS,
  requireKeyFile,
  withClient,
} from "../connection/connection.js";
import { readPublicKey } from "../files/public-key.js";
import { fileSigner, readSecret } from "../files/secrets.js";
import { flag, subcommand, text } from "../line/subcommand.js";
import { none, required, timeOption, UsageError } from "../line/usage.js";

export const register = subcommand({
  forms: ["--key KEY.pem --pseudonym NAME [--public-key FILE.pem]"],
  about: `Registers the public half of KEY and checks the receipt. With --public-key it registers that key of somebody else: so an
operator lets people in where not everybody may write (cairnlog writers).`,
  options: {
    pseudonym: text("NAME", "your display name"),
    "public-key": text(
      "FILE.pem",
      "register this key of somebody else; KEY is then that of the operator or a trust anchor",
    ),
    expires: text("TIMESTAMP", "when the key expires (ISO 8601; default: never)"),
    ...CONNECTION_OPTIONS,
  },
  examples: `cairnlog register --key me.pem --pseudonym Ada
cairnlog register --public-key ada.pub.pem --pseudonym Ada --key operator.pem`,
  async run(operands, values) {
    none(operands);
    requireKeyFile(values);
    const options = {
      pseudonym: required(values.pseudonym, "--pseudonym"),
      expirationDate: timeOption(values.expires, "--expires"),
    };
    const other = values["public-key"] === undefined ? undefined : readPublicKey(values["public-key"]).pem;
    const receipt = await withClient(values, ({ keys }) =>
      other === undefined ? keys.register(options) : keys.registerOther(other, options),
    );
    printAnswer(values, receipt, `${receipt.fingerprint} (${receipt.pseudonym}): entry ${receipt.log_entry_id}`);
    return 0;
  },
});

export const succeed = subcommand({
  forms: ["--key OLD.pem --new-key NEW.pem"],
  about: "Makes NEW the successor of OLD, signed by both, and checks the receipt. OLD signs nothing new from then on.",
  options: {
    "new-key": text("NEW.pem", "its successor, not registered yet (cairnlog keygen); it stays here"),
    "new-passphrase-file": text("FILE", "the passphrase of NEW.pem, where it is encrypted"),
    "password-file": text("FILE", "a file that holds OLD's password, where it has one; - reads standard input"),
    recovery: flag("OLD has expired"),
    pseudonym: text("NAME", "display name of the new key (default: that of the old one)"),
    expires: text("TIMESTAMP", "when the new key expires (ISO 8601; default: never)"),
    ...CONNECTION_OPTIONS,
    key: text("OLD.pem", "the key to replace; it stays here"),
  },
  examples: "cairnlog succeed --key me.pem --new-key me2.pem",
  async run(operands, values) {
    none(operands);
    requireKeyFile(values);
    const successor = await fileSigner(required(values["new-key"], "--new-key"), values["new-passphrase-file"]);
    const { pseudonym, recovery, "password-file": file } = values;
    const expirationDate = timeOption(values.expires, "--expires");
    const password = file === undefined ? undefined : readSecret(file);
    const receipt = await withClient(values, (client) =>
      client.keys.succeed(successor, { pseudonym, expirationDate, recovery, password }),
    );
    const { old_fingerprint, new_fingerprint, log_entry_id } = receipt;
    printAnswer(values, receipt, `${old_fingerprint} is succeeded by ${new_fingerprint}: entry ${log_entry_id}`);
    return 0;
  },
});

export const revoke = subcommand({
  forms: ["--yes [--key KEY.pem]"],
  about: `Revokes KEY, or without one the key of the session (cairnlog login), and checks the receipt. Nothing takes that
back. What the key signed before stays verifiable.`,
  options: {
    yes: flag("you mean it"),
    ...CONNECTION_OPTIONS,
    key: text("KEY.pem", "the key to revoke; it stays here"),
  },
  examples: "cairnlog revoke --yes --key me.pem",
  async run(operands, values) {
    none(operands);
    if (!values.yes) throw new UsageError("nothing takes a revocation back: say --yes");
    const receipt = await withClient(values, (client) => client.keys.revoke());
    printAnswer(values, receipt, `${receipt.fingerprint} is revoked: entry ${receipt.log_entry_id}`);
    return 0;
  },
});

export const writers = subcommand({
  forms: [""],
  about: "Shows who may write to the log. Who is on a list of the operator's is not shown.",
  options: READING_OPTIONS,
  examples: "cairnlog writers --server https://log.example",
  async run(operands, values) {
    none(operands);
    const answer = await withClient(values, (client) => client.writers());
    printAnswer(values, answer, answer.sentence);
    return 0;
  },
});
