/** `cairnlog account`: opens an account, recovers one, adds keys to it. */
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { CairnlogError } from "../../../engine/base/error.js";
import type { OpenedAccount } from "../../client/index.js";
import { type Action, type Done, runAction } from "../connection/actions.js";
import { CONNECTION_OPTIONS, requireKeyFile } from "../connection/connection.js";
import { serverOf } from "../connection/service.js";
import { StateFolder } from "../connection/state.js";
import { fileSigner, readSecret } from "../files/secrets.js";
import { flag, subcommandWithActions, text, type Values } from "../line/subcommand.js";
import { none, required } from "../line/usage.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";

const OPTIONS = {
  name: text("NAME", "display name of the account"),
  email: text("ADDRESS", "never shown to others"),
  label: text("TEXT", "what the device is called that holds the key"),
  hardware: flag("the key is held in hardware"),
  "hardware-attestation": text("FILE", "PEM certificates that show it, that of the key first"),
  "recovery-key-file": text("FILE", "a file that holds the recovery key; - reads standard input"),
  "recovery-key-out": text(
    "FILE",
    "write the recovery key to a new file that you alone can read, instead of printing it",
  ),
  "new-key": text("NEW.pem", "the key to add; it stays here"),
  "new-passphrase-file": text("FILE", "the passphrase of NEW.pem, where it is encrypted"),
  ...CONNECTION_OPTIONS,
  key: text("KEY.pem", "the key of the account; it stays here"),
} as const;

const ACTIONS = {
  create: (names, values) => {
    none(names);
    requireKeyFile(values);
    const display_name = required(values.name, "--name");
    const account = { display_name, email: required(values.email, "--email"), ...credential(values) };
    return (client) => opened(values, () => client.accounts.open(account));
  },
  recover: (names, values) => {
    none(names);
    requireKeyFile(values);
    const pseudonym = required(values.name, "--name");
    const recovery_key = readSecret(required(values["recovery-key-file"], "--recovery-key-file"));
    const recovery = { pseudonym, recovery_key, ...credential(values) };
    return (client) => opened(values, () => client.accounts.recover(recovery));
  },
  enroll: (names, values) => {
    none(names);
    requireKeyFile(values);
    const file = required(values["new-key"], "--new-key");
    const described = credential({ ...values, hardware: true });
    return async (client) => {
      const holder = await fileSigner(file, values["new-passphrase-file"]);
      const answer = await client.accounts.enroll(holder, described);
      return { answer, text: `${answer.credential.key_fingerprint} is enrolled as ${answer.credential.device_label}` };
    };
  },
} satisfies Record<string, Action<typeof OPTIONS>>;

function credential(values: Values<typeof OPTIONS>) {
  const chain = values["hardware-attestation"];
  return {
    credential_type: values.hardware || chain !== undefined ? ("hardware" as const) : ("software" as const),
    device_label: required(values.label, "--label"),
    ...(chain === undefined ? {} : { hardware_attestation: readFileSync(chain, "utf8") }),
  };
}

/** The recovery key is shown only this once: it is in a file until it is written, and the file is there before it is asked for. */
async function opened(values: Values<typeof OPTIONS>, open: () => Promise<OpenedAccount>): Promise<Done> {
  const out = values["recovery-key-out"];
  const file = out ?? new StateFolder(serverOf(values.server), values.state).openSecret("recovery-key");
  if (out !== undefined) closeSync(openSync(out, "wx", 0o600));
  let answer: OpenedAccount;
  try {
    answer = await open();
  } catch (error) {
    rmSync(file);
    throw error;
  }
  const { user, credential: first, recovery_key, ...rest } = answer;
  const text = `${user.display_name}: ${first.key_fingerprint}`;
  const shown = { answer, text: `${text}\nrecovery key, shown this once: ${recovery_key}` };
  try {
    writeFileSync(file, `${recovery_key}\n`, { flush: true });
  } catch (cause) {
    if (!isSystemError(cause)) throw cause;
    removeIfPossible(file);
    const detail = `The recovery key is on standard output alone: ${systemSentence(cause, file)}`;
    return { ...shown, failure: new CairnlogError("storage-failed", detail, { cause }) };
  }
  if (out === undefined) return { ...shown, keptIn: file };
  return {
    answer: { user, credential: first, ...rest, recovery_key_file: file },
    text: `${text}\nrecovery key in ${file}`,
  };
}

/** On a disk that fails, too, the key must be shown. */
function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // It is empty, or has the key that is shown.
  }
}

export const account = subcommandWithActions({
  about: "Opens an account, gives it back to whoever lost its keys, and adds keys to it.",
  options: OPTIONS,
  actions: {
    create: {
      form: "--name NAME --email ADDRESS --label TEXT --key KEY.pem",
      about: "Opens an account for KEY, which is registered, and prints its recovery key.",
      takes: ["name", "email", "recovery-key-out"],
    },
    recover: {
      form: "--name NAME --recovery-key-file FILE --label TEXT --key NEW.pem",
      about: "Gives an account back under the key NEW, revokes all its other keys, and prints a new recovery key.",
      takes: ["name", "recovery-key-file", "recovery-key-out"],
    },
    enroll: {
      form: "--new-key NEW.pem --label TEXT --key KEY.pem",
      about: "Adds the key NEW to an account, vouched for by KEY; both are in hardware.",
      takes: ["new-key", "new-passphrase-file"],
    },
  },
  examples: "cairnlog account create --name Ada --email ada@example.org --label laptop --key me.pem",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
