/** `cairnlog policy`: the policy of a key for attestation requests. */
import { type Action, runAction, shown } from "../connection/actions.js";
import { CONNECTION_OPTIONS } from "../connection/connection.js";
import { readObject } from "../files/objects.js";
import { subcommandWithActions, text } from "../line/subcommand.js";
import { only, required } from "../line/usage.js";

const OPTIONS = {
  otherwise: text("ACTION", "what becomes of a request that does not meet them: allow, decline or hold"),
  from: text("TIMESTAMP", "when it comes into force (ISO 8601; default: now)"),
  ...CONNECTION_OPTIONS,
} as const;

const ACTIONS = {
  publish: (names, { otherwise, from }) => {
    const policy = {
      predicates: readObject(only(names, "PREDICATES.json")),
      default_action_on_failure: required(otherwise, "--otherwise"),
      ...(from === undefined ? {} : { effective_from: from }),
    };
    return async (client) => {
      const answer = await client.policies.publish(policy);
      const { target_fingerprint, status, effective_from, log_entry_id } = answer;
      return {
        answer,
        text: `policy of ${target_fingerprint}, ${status}, from ${effective_from}: entry ${log_entry_id}`,
      };
    };
  },
  show: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return async (client) => shown(await client.policies.find(fingerprint));
  },
} satisfies Record<string, Action<typeof OPTIONS>>;

export const policy = subcommandWithActions({
  about: "The policy of a key for attestation requests.",
  options: OPTIONS,
  actions: {
    publish: {
      form: "PREDICATES.json --otherwise allow|decline|hold [--key KEY.pem]",
      about:
        "Puts a policy of KEY or of the session (cairnlog login) on the log and checks the receipt: a request that does not meet the predicates (docs/policies.md) is declined or held at once.",
      takes: ["otherwise", "from", "key", "passphrase-file"],
    },
    show: { form: "FINGERPRINT", about: "Shows the policy of a key that is in force, and the next one." },
  },
  examples: "cairnlog policy publish predicates.json --otherwise decline --key me.pem",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
