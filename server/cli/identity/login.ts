/** `cairnlog login`: gets a session token, prints it, and keeps it for commands that do not need the key. */
import { CONNECTION_OPTIONS, report, requireKey, withClient } from "../connection.js";
import { text } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { none } from "../usage.js";
import { readSecret } from "./secrets.js";

const OPTIONS = {
  "password-file": text("FILE", "a file that holds the key's password, where it has one; - reads standard input"),
  ...CONNECTION_OPTIONS,
} as const;

export const login = subcommand({
  forms: ["--key KEY.pem"],
  about: `Signs a challenge with KEY, prints the session token and keeps it in a file that only you can read. Whoever has
the token can act for the key until it expires. revoke, request and respond go by it when they get no --key.`,
  options: OPTIONS,
  examples: "TOKEN=$(cairnlog login --key me.pem)",
  async run(operands, values) {
    none(operands);
    requireKey(values);
    const file = values["password-file"];
    const password = file === undefined ? undefined : readSecret(file);
    const { session, path } = await withClient(values, async (client, folder) => {
      const opened = await client.login(password);
      return { session: opened, path: folder.saveSession(opened) };
    });
    report(values, { ...session, file: path }, session.token);
    return 0;
  },
});
