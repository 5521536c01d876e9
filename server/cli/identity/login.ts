/** `cairnlog login`: gets a session token and keeps it. `cairnlog password`: the second factor of a key. */

import { type Action, runAction } from "../connection/actions.js";
import { CONNECTION_OPTIONS, printAnswer, requireKeyFile, withClient } from "../connection/connection.js";
import { readSecret } from "../files/secrets.js";
import { flag, subcommand, subcommandWithActions, text } from "../line/subcommand.js";
import { none, required } from "../line/usage.js";

export const login = subcommand({
  forms: ["--key KEY.pem"],
  about: `Signs a challenge with KEY, and keeps the session in a file that only you can read. Whoever has its token can act for
the key until it expires. revoke, request and respond go by it when they get no --key.`,
  options: {
    "password-file": text("FILE", "a file that holds the key's password, where it has one; - reads standard input"),
    "print-token": flag("print the session token, for another program"),
    ...CONNECTION_OPTIONS,
  },
  examples: `cairnlog login --key me.pem
TOKEN=$(cairnlog login --key me.pem --print-token)`,
  async run(operands, values) {
    none(operands);
    requireKeyFile(values);
    const file = values["password-file"];
    const password = file === undefined ? undefined : readSecret(file);
    const { session, path } = await withClient(values, async (client, folder) => {
      const opened = await client.login(password);
      return { session: opened, path: folder.saveSession(opened) };
    });
    const { token, ...shown } = session;
    const text = `Signed in as ${session.pseudonym} (${session.fingerprint}) until ${session.expires_at}. The session is in ${path}.`;
    if (values["print-token"]) printAnswer(values, { ...session, file: path }, token);
    else printAnswer(values, { ...shown, file: path }, text);
    return 0;
  },
});

const OPTIONS = {
  "password-file": text("FILE", "the password, 8 to 1024 characters; - reads standard input"),
  "current-password-file": text("FILE", "the one that it takes the place of"),
  ...CONNECTION_OPTIONS,
} as const;

const ACTIONS = {
  set: (names, values) => {
    none(names);
    requireKeyFile(values);
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
  about: `The second factor of a key, which login, attest and succeed take from then on beside KEY (--password-file). It is another thing than
the passphrase that KEY.pem may be encrypted under: the service knows it, as a hash.`,
  options: OPTIONS,
  actions: {
    set: { form: "--key KEY.pem --password-file FILE", about: "Sets the password of a key." },
  },
  examples: "cairnlog password set --key me.pem --password-file password",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
