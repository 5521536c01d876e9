/** `cairnlog account`: opens an account, recovers one, adds keys to it. */
import { readFileSync } from "node:fs";
import { writeKeyFile } from "../../../engine/crypto/keys/operator-key.js";
import type { OpenedAccount } from "../../client/index.js";
import { type Action, type Done, runAction } from "../actions.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS } from "../connection.js";
import { none, required, type Subcommand, type Values } from "../usage.js";
import { fileSigner, readSecret } from "./secrets.js";

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  name: { type: "string" },
  email: { type: "string" },
  label: { type: "string" },
  hardware: { type: "boolean", default: false },
  "hardware-attestation": { type: "string" },
  "recovery-key-file": { type: "string" },
  "recovery-key-out": { type: "string" },
  "new-key": { type: "string" },
  "new-passphrase-file": { type: "string" },
} as const;

const ACTIONS: Readonly<Record<string, Action<typeof OPTIONS>>> = {
  create: (names, values) => {
    none(names);
    required(values.key, "--key");
    const display_name = required(values.name, "--name");
    const account = { display_name, email: required(values.email, "--email"), ...credential(values) };
    return async (client) => opened(await client.accounts.open(account), values["recovery-key-out"]);
  },
  recover: (names, values) => {
    none(names);
    required(values.key, "--key");
    const pseudonym = required(values.name, "--name");
    const recovery_key = readSecret(required(values["recovery-key-file"], "--recovery-key-file"));
    const recovery = { pseudonym, recovery_key, ...credential(values) };
    return async (client) => opened(await client.accounts.recover(recovery), values["recovery-key-out"]);
  },
  enroll: (names, values) => {
    none(names);
    required(values.key, "--key");
    const file = required(values["new-key"], "--new-key");
    const described = credential({ ...values, hardware: true });
    return async (client) => {
      const holder = await fileSigner(file, values["new-passphrase-file"]);
      const answer = await client.accounts.enroll(holder, described);
      return { answer, text: `${answer.credential.key_fingerprint} is enrolled as ${answer.credential.device_label}` };
    };
  },
};

function credential(values: Values<typeof OPTIONS>) {
  const chain = values["hardware-attestation"];
  return {
    credential_type: values.hardware || chain !== undefined ? ("hardware" as const) : ("software" as const),
    device_label: required(values.label, "--label"),
    ...(chain === undefined ? {} : { hardware_attestation: readFileSync(chain, "utf8") }),
  };
}

/** The recovery key is shown only this once. */
function opened(answer: OpenedAccount, file: string | undefined): Done {
  const { user, credential: first, recovery_key, ...rest } = answer;
  const text = `${user.display_name}: ${first.key_fingerprint}`;
  if (file === undefined) return { answer, text: `${text}\nrecovery key, shown this once: ${recovery_key}` };
  writeKeyFile(file, `${recovery_key}\n`);
  return {
    answer: { user, credential: first, ...rest, recovery_key_file: file },
    text: `${text}\nrecovery key in ${file}`,
  };
}

export const account: Subcommand = {
  help: `cairnlog account create --name NAME --email ADDRESS --label TEXT --key KEY.pem --server URL [options]
cairnlog account recover --name NAME --recovery-key-file FILE --label TEXT --key NEW.pem --server URL [options]
cairnlog account enroll --new-key NEW.pem --label TEXT --key KEY.pem --server URL [options]

create opens an account for KEY, which is registered, and prints its recovery key. recover gives it back under NEW,
revokes all other keys of it and prints a new recovery key. enroll adds NEW, vouched for by KEY; both are in hardware.

Options:
  --key KEY.pem                the key of the account; it stays here
  --name NAME                  display name of the account
  --email ADDRESS              never shown to others
  --label TEXT                 what the device is called that holds the key
  --hardware                   the key is held in hardware
  --hardware-attestation FILE  PEM certificates that show it, that of the key first
  --recovery-key-file FILE     recover: a file that holds the recovery key; - reads standard input
  --recovery-key-out FILE      write the recovery key to a new file that you alone can read, instead of printing it
  --new-key NEW.pem            enroll: the key to add; it stays here
  --new-passphrase-file FILE   the passphrase of NEW.pem, where it is encrypted
${CONNECTION_HELP}

Example:
  cairnlog account create --name Ada --email ada@example.org --label laptop --key me.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  actions: Object.keys(ACTIONS),
  run: (argv) => runAction(ACTIONS, OPTIONS, argv),
};
