/** `cairnlog login`: gets a session token and keeps it for commands that do not need the key. */
import { CONNECTION_OPTIONS, report, requireKey, withClient } from "../connection/connection.js";
import { readSecret } from "../files/secrets.js";
import { flag, text } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { none } from "../line/usage.js";

const OPTIONS = {
  "password-file": text("FILE", "a file that holds the key's password, where it has one; - reads standard input"),
  "print-token": flag("print the session token, for another program"),
  ...CONNECTION_OPTIONS,
} as const;

export const login = subcommand({
  forms: ["--key KEY.pem"],
  about: `Signs a challenge with KEY, and keeps the session in a file that only you can read. Whoever has its token can act for
the key until it expires. revoke, request and respond go by it when they get no --key.`,
  options: OPTIONS,
  examples: `cairnlog login --key me.pem
TOKEN=$(cairnlog login --key me.pem --print-token)`,
  async run(operands, values) {
    none(operands);
    requireKey(values);
    const file = values["password-file"];
    const password = file === undefined ? undefined : readSecret(file);
    const { session, path } = await withClient(values, async (client, folder) => {
      const opened = await client.login(password);
      return { session: opened, path: folder.saveSession(opened) };
    });
    const { token, ...shown } = session;
    const text = `Signed in as ${session.pseudonym} (${session.fingerprint}) until ${session.expires_at}. The session is in ${path}.`;
    if (values["print-token"]) report(values, { ...session, file: path }, token);
    else report(values, { ...shown, file: path }, text);
    return 0;
  },
});
