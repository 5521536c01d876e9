/** `cairnlog anchor`: anchoring of the log in Bitcoin. */
import { type Action, runAction, shown } from "../actions.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS } from "../connection.js";
import { none, type Subcommand } from "../usage.js";

const ACTIONS: Readonly<Record<string, Action<typeof CONNECTION_OPTIONS>>> = {
  status: (names) => {
    none(names);
    return async (client) => shown(await client.anchoring.status());
  },
  now: (names) => {
    none(names);
    return async (client) => {
      const answer = await client.anchoring.anchor();
      return { answer, text: `entry ${answer.anchored_entry_id} is promised to be anchored` };
    };
  },
};

export const anchor: Subcommand = {
  help: `cairnlog anchor status --server URL [options]
cairnlog anchor now --key OPERATOR.pem --server URL [options]

status tells the newest anchored entry, how far its proof is, and whether anchoring is due. now has the newest entry's
hash sent to the calendars of the service; it is for the operator alone.

Options:
  --key OPERATOR.pem       now: the operator's private key; it stays here
${CONNECTION_HELP}

Example:
  cairnlog anchor status --server http://127.0.0.1:8080`,
  options: CONNECTION_OPTIONS,
  actions: Object.keys(ACTIONS),
  run: (argv) => runAction(ACTIONS, CONNECTION_OPTIONS, argv),
};
