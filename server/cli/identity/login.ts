/** `cairnlog login`: gets a session token, prints it, and keeps it for commands that do not need the key. */
import { CONNECTION_HELP, CONNECTION_OPTIONS, report, withClient } from "../connection.js";
import { readArguments, required, type Subcommand } from "../usage.js";
import { readSecret } from "./secrets.js";

const OPTIONS = { ...CONNECTION_OPTIONS, "password-file": { type: "string" } } as const;

export const login: Subcommand = {
  help: `cairnlog login --key KEY.pem --server URL [options]

Signs a challenge with KEY, prints the session token and keeps it in a file that only you can read. Whoever has
the token can act for the key until it expires. revoke, request and respond go by it when they get no --key.

Options:
  --key KEY.pem            your private key; it stays here
  --password-file FILE     a file that holds the key's password, where it has one; - reads standard input
${CONNECTION_HELP}

Example:
  TOKEN=$(cairnlog login --key me.pem --server http://127.0.0.1:8080)`,
  options: OPTIONS,
  async run(argv) {
    const { values } = readArguments(argv, OPTIONS);
    required(values.key, "--key");
    const file = values["password-file"];
    const password = file === undefined ? undefined : readSecret(file);
    const { session, path } = await withClient(values, async (client, folder) => {
      const opened = await client.login(password);
      return { session: opened, path: folder.saveSession(opened) };
    });
    report(values, { ...session, file: path }, session.token);
    return 0;
  },
};
