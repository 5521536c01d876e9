/** `cairnlog keys`: the registered keys. */
import { type Action, listed, runAction, shown } from "../actions.js";
import { READING_HELP, READING_OPTIONS } from "../connection.js";
import { only, type Subcommand } from "../usage.js";

const ACTIONS: Readonly<Record<string, Action<typeof READING_OPTIONS>>> = {
  list: (names) => {
    const name = names.length ? only(names, "NAME") : undefined;
    return (client) =>
      listed(client.keys.list(name), ({ fingerprint, pseudonym, algorithm, status }) =>
        [fingerprint, algorithm, status, pseudonym].join(" "),
      );
  },
  show: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return async (client) => shown(await client.keys.find(fingerprint));
  },
};

export const keys: Subcommand = {
  help: `cairnlog keys list [NAME] --server URL [options]
cairnlog keys show FINGERPRINT --server URL [options]

list tells all keys, or those whose pseudonym contains NAME; show one with its public key, status and successor.

Options:
${READING_HELP}

Example:
  cairnlog keys list Ada --server http://127.0.0.1:8080`,
  options: READING_OPTIONS,
  actions: Object.keys(ACTIONS),
  run: (argv) => runAction(ACTIONS, READING_OPTIONS, argv),
};
