/** `cairnlog anchor`: anchoring of the log in Bitcoin. */
import { type Action, runAction, shown } from "../connection/actions.js";
import { CONNECTION_OPTIONS } from "../connection/connection.js";
import { subcommandWithActions } from "../line/subcommand.js";
import { none } from "../line/usage.js";

const ACTIONS = {
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
} satisfies Record<string, Action<typeof CONNECTION_OPTIONS>>;

export const anchor = subcommandWithActions({
  about: "Anchoring of the log in Bitcoin.",
  options: CONNECTION_OPTIONS,
  actions: {
    status: { form: "", about: "Shows the newest anchored entry, how far its proof is, and whether anchoring is due." },
    now: {
      form: "--key OPERATOR.pem",
      about: "Has the newest entry's hash sent to the calendars of the service; for the operator alone.",
      takes: ["key", "passphrase-file"],
    },
  },
  examples: "cairnlog anchor status",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
