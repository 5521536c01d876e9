/** `cairnlog policy`: the policy of a key for attestation requests. */
import { type Action, runAction, shown } from "../actions.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS } from "../connection.js";
import { readObject } from "../objects.js";
import { only, required, type Subcommand } from "../usage.js";

const OPTIONS = { ...CONNECTION_OPTIONS, otherwise: { type: "string" }, from: { type: "string" } } as const;

const ACTIONS: Readonly<Record<string, Action<typeof OPTIONS>>> = {
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
};

export const policy: Subcommand = {
  help: `cairnlog policy publish PREDICATES.json --otherwise allow|decline|hold --server URL [--key KEY.pem] [options]
cairnlog policy show FINGERPRINT --server URL [options]

publish puts a policy of KEY or of the session (cairnlog login) on the log and checks the receipt: a request that does
not meet the predicates (docs/policies.md) is declined or held at once. show tells the policy in force and the next.

Options:
  --key KEY.pem            your private key; it stays here
  --otherwise ACTION       what becomes of a request that does not meet them: allow, decline or hold
  --from TIMESTAMP         when it comes into force (ISO 8601; default: now)
${CONNECTION_HELP}

Example:
  cairnlog policy publish predicates.json --otherwise decline --key me.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  actions: Object.keys(ACTIONS),
  run: (argv) => runAction(ACTIONS, OPTIONS, argv),
};
