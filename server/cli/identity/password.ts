/** `cairnlog password`: the second factor of a key. */
import { type Action, runAction } from "../actions.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS } from "../connection.js";
import { none, required, type Subcommand } from "../usage.js";
import { readSecret } from "./secrets.js";

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  "password-file": { type: "string" },
  "current-password-file": { type: "string" },
} as const;

const ACTIONS: Readonly<Record<string, Action<typeof OPTIONS>>> = {
  set: (names, values) => {
    none(names);
    required(values.key, "--key");
    const password = readSecret(required(values["password-file"], "--password-file"));
    const file = values["current-password-file"];
    const current = file === undefined ? undefined : readSecret(file);
    return async (client) => {
      const answer = await client.setPassword(password, current);
      return { answer, text: `${answer.fingerprint} has a new password` };
    };
  },
};

export const password: Subcommand = {
  help: `cairnlog password set --key KEY.pem --password-file FILE --server URL [options]

Sets the password that login and attest take from then on beside KEY (--password-file). It is another thing than the
passphrase that KEY.pem may be encrypted under: the service knows it, as a hash.

Options:
  --key KEY.pem                  your private key; it stays here
  --password-file FILE           the password, 8 to 1024 characters; - reads standard input
  --current-password-file FILE   the one that it takes the place of
${CONNECTION_HELP}

Example:
  cairnlog password set --key me.pem --password-file password --server http://127.0.0.1:8080`,
  options: OPTIONS,
  actions: Object.keys(ACTIONS),
  run: (argv) => runAction(ACTIONS, OPTIONS, argv),
};
