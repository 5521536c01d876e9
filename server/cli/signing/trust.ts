/** `cairnlog trust`: the trust configuration of a key, and the service's trust in keys. */
import type { NewTrustConfig } from "../../client/index.js";
import { type Action, runAction, shown, tabled } from "../connection/actions.js";
import { CONNECTION_OPTIONS, readNumber } from "../connection/connection.js";
import { readObject } from "../files/objects.js";
import { subcommandWithActions, text } from "../line/subcommand.js";
import { none, only } from "../line/usage.js";
import { Names } from "../printing/names.js";
import { graphPicture, standingPicture } from "../printing/trust-pictures.js";

const OPTIONS = {
  "max-depth": text("HOPS", "how far to go (default: 3)"),
  status: text("STATUS", "endorsements of this status only"),
  institution: text("NAME", "endorsements by this institution only"),
  ...CONNECTION_OPTIONS,
} as const;

const ACTIONS = {
  create: (names) => {
    const config = readObject(only(names, "CONFIG.json")) as NewTrustConfig;
    return async (client) => {
      const answer = await client.trust.configure(config);
      return { answer, text: `configuration ${answer.id} of ${answer.fingerprint} is ${answer.status}` };
    };
  },
  revoke: (names) => {
    none(names);
    return async (client) => {
      const answer = await client.trust.revoke();
      return { answer, text: `configuration ${answer.id} of ${answer.fingerprint} is ${answer.status}` };
    };
  },
  show: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return async (client) => shown(await client.trust.find(fingerprint));
  },
  list: (names) => {
    none(names);
    return (client) => {
      const names = new Names(client);
      return tabled(client.trust.list(), ["ID", "CREATED", "STATUS", "KEY", "NAME"], async (config) => [
        `${config.id}`,
        config.created_at,
        config.status,
        config.fingerprint,
        await names.of(config.fingerprint),
      ]);
    };
  },
  standing: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return async (client) => {
      const answer = await client.trust.standing(fingerprint);
      const text = async () => standingPicture(answer, await new Names(client).of(answer.fingerprint));
      return { answer, text };
    };
  },
  graph: (names, { "max-depth": depth, status, institution }) => {
    const fingerprint = only(names, "FINGERPRINT");
    const filter = {
      ...(depth === undefined ? {} : { max_depth: readNumber(depth, "--max-depth") }),
      ...(status === undefined ? {} : { status: status as "active" }),
      ...(institution === undefined ? {} : { institution }),
    };
    return async (client) => {
      const answer = await client.trust.graph(fingerprint, filter);
      return { answer, text: graphPicture(answer) };
    };
  },
} satisfies Record<string, Action<typeof OPTIONS>>;

export const trust = subcommandWithActions({
  about: `The trust configuration of a key, and the service's trust in keys.

CONFIG.json holds minimum_threshold and, where wanted, direct_signer_anchors, endorser_anchors, max_depth,
decay_per_hop and category_weights (docs/trust.md).`,
  options: OPTIONS,
  actions: {
    create: {
      form: "CONFIG.json [--key KEY.pem]",
      about: "Stores a configuration in place of the active one of KEY or of the session (cairnlog login).",
      takes: ["key", "passphrase-file"],
    },
    revoke: {
      form: "[--key KEY.pem]",
      about: "Ends the active configuration of KEY or of the session.",
      takes: ["key", "passphrase-file"],
    },
    list: { form: "", about: "Lists everybody's configurations." },
    show: { form: "FINGERPRINT", about: "Shows a key's configuration." },
    standing: { form: "FINGERPRINT", about: "Shows how the service trusts a key." },
    graph: {
      form: "FINGERPRINT",
      about: "Shows the endorsements around a key.",
      takes: ["max-depth", "status", "institution"],
    },
  },
  examples: "echo '{\"minimum_threshold\": 0.5}' | cairnlog trust create - --key me.pem",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
