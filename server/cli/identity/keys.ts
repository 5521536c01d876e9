/** `cairnlog keys`: the registered keys. */
import type { KeyDetail } from "../../client/index.js";
import { type Action, runAction, tabled } from "../connection/actions.js";
import { READING_OPTIONS } from "../connection/connection.js";
import { subcommandWithActions } from "../line/subcommand.js";
import { only } from "../line/usage.js";
import { printable } from "../terminal/printable.js";
import { facts, type Styled } from "../terminal/table.js";

const ACTIONS = {
  list: (names) => {
    const name = names.length ? only(names, "NAME") : undefined;
    return (client) =>
      tabled(client.keys.list(name), ["FINGERPRINT", "ALGORITHM", "STATUS", "REGISTERED", "NAMED", "NAME"], (key) => [
        key.fingerprint,
        key.algorithm,
        key.status,
        key.registered_at.slice(0, "2026-01-01".length),
        // Whether the key has signed its name.
        key.named ? "yes" : "no",
        key.pseudonym,
      ]);
  },
  show: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return async (client) => {
      const answer = await client.keys.find(fingerprint);
      return { answer, text: described(answer) };
    };
  },
} satisfies Record<string, Action<typeof READING_OPTIONS>>;

function described(key: KeyDetail): Styled {
  const named = facts([
    ["name", `${key.pseudonym} (${key.named ? "self-declared" : NOT_SIGNED})`],
    ["fingerprint", key.fingerprint],
    ["algorithm", key.algorithm],
    ["status", key.status],
    ["registered", key.registered_at],
    ["log entry", key.log_entry_id],
    ["expires", key.expires_at === null ? "never" : `${key.expires_at}${key.named ? "" : ` (${NOT_SIGNED})`}`],
    ["replaces", linked(key.predecessor_fingerprint, key.predecessor_confirmed, "this key")],
    ["replaced by", linked(key.successor_fingerprint, key.successor_confirmed, "the successor")],
    [
      "possession",
      key.proven ? "an entry of the log is signed by this key" : "not shown: anybody may have registered it",
    ],
  ]);
  return { styled: `${named}\n${printable(key.public_key.trimEnd())}` };
}

const NOT_SIGNED = "not signed by this key: anybody may have recorded it";

const linked = (fingerprint: string | null, isConfirmed: boolean | null, whose: string): string | null =>
  fingerprint === null || isConfirmed ? fingerprint : `${fingerprint} (unconfirmed: ${whose} has not signed that)`;

export const keys = subcommandWithActions({
  about: "The keys that are registered in the log.",
  options: READING_OPTIONS,
  actions: {
    list: { form: "[NAME]", about: "Lists all keys, or those whose pseudonym contains NAME." },
    show: { form: "FINGERPRINT", about: "Shows a key: its name, status, successor and public key." },
  },
  examples: "cairnlog keys list Ada",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
