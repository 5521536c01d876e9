/** `cairnlog trust`: the trust configuration of a key, and the service's trust in keys. */
import type { NewTrustConfig } from "../../client/index.js";
import { type Action, listed, runAction, shown } from "../actions.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS, readNumber } from "../connection.js";
import { readObject } from "../objects.js";
import { none, only, type Subcommand } from "../usage.js";

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  "max-depth": { type: "string" },
  status: { type: "string" },
  institution: { type: "string" },
} as const;

const ACTIONS: Readonly<Record<string, Action<typeof OPTIONS>>> = {
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
    return (client) =>
      listed(client.trust.list(), ({ id, fingerprint, status, created_at }) =>
        [id, created_at, status, fingerprint].join(" "),
      );
  },
  standing: (names) => {
    const fingerprint = only(names, "FINGERPRINT");
    return async (client) => shown(await client.trust.standing(fingerprint));
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
      const lines = answer.edges.map(({ from, to, category, status: now }) => `${from} → ${to} ${category} ${now}`);
      const more = answer.truncated ? ["there is more than that"] : [];
      return { answer, text: [`${answer.nodes.length} keys`, ...lines, ...more].join("\n") };
    };
  },
};

export const trust: Subcommand = {
  help: `cairnlog trust create CONFIG.json --server URL [--key KEY.pem] [options]
cairnlog trust revoke --server URL [--key KEY.pem] [options]
cairnlog trust list --server URL [options]
cairnlog trust show|standing|graph FINGERPRINT --server URL [options]

create stores a configuration in place of the active one of KEY or of the session (cairnlog login); revoke ends it.
show tells a key's configuration, list everybody's, standing how the service trusts a key, graph the endorsements
around it.

CONFIG.json holds minimum_threshold and, where wanted, direct_signer_anchors, endorser_anchors, max_depth,
decay_per_hop and category_weights (docs/trust.md).

Options:
  --key KEY.pem            your private key; it stays here
  --max-depth HOPS         graph: how far to go (default: 3)
  --status STATUS          graph: endorsements of this status only
  --institution NAME       graph: endorsements by this institution only
${CONNECTION_HELP}

Example:
  echo '{"minimum_threshold": 0.5}' | cairnlog trust create - --key me.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  actions: Object.keys(ACTIONS),
  run: (argv) => runAction(ACTIONS, OPTIONS, argv),
};
