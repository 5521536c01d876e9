/** `cairnlog password`: the second factor of a key. */
import { type Action, runAction } from "../connection/actions.js";
import { CONNECTION_OPTIONS, requireKey } from "../connection/connection.js";
import { readSecret } from "../files/secrets.js";
import { text } from "../line/options.js";
import { subcommandWithActions } from "../line/subcommand.js";
import { none, required } from "../line/usage.js";

const OPTIONS = {
  "password-file": text("FILE", "the password, 8 to 1024 characters; - reads standard input"),
  "current-password-file": text("FILE", "the one that it takes the place of"),
  ...CONNECTION_OPTIONS,
} as const;

const ACTIONS = {
  set: (names, values) => {
    none(names);
    requireKey(values);
    const password = readSecret(required(values["password-file"], "--password-file"));
    const file = values["current-password-file"];
    const current = file === undefined ? undefined : readSecret(file);
    return async (client) => {
      const answer = await client.setPassword(password, current);
      return { answer, text: `${answer.fingerprint} has a new password` };
    };
  },
} satisfies Record<string, Action<typeof OPTIONS>>;

export const password = subcommandWithActions({
  about: `The second factor of a key, which login and attest take from then on beside KEY (--password-file). It is another thing than the
passphrase that KEY.pem may be encrypted under: the service knows it, as a hash.`,
  options: OPTIONS,
  actions: {
    set: { form: "--key KEY.pem --password-file FILE", about: "Sets the password of a key." },
  },
  examples: "cairnlog password set --key me.pem --password-file password",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
