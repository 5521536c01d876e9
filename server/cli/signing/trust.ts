/** `cairnlog trust`: the trust configuration of a key, and the service's trust in keys. */
import type { Graph, NewTrustConfig, TrustStatus } from "../../client/index.js";
import { trustSum } from "../../client/signing/trust-sum.js";
import { type Action, runAction, shown, tabled } from "../connection/actions.js";
import { CONNECTION_OPTIONS, readNumber } from "../connection/connection.js";
import { readObject } from "../files/objects.js";
import { subcommandWithActions, text } from "../line/subcommand.js";
import { none, only } from "../line/usage.js";
import { Names, quoted } from "../printing/names.js";
import { printable } from "../terminal/printable.js";
import { facts, shortFingerprint } from "../terminal/table.js";

// Trust as pictures in text.

const BAR_WIDTH = 20;

/** A share from 0 to 1. */
function bar(share: number): string {
  const filled = Math.round(Math.min(1, share) * BAR_WIDTH);
  return `[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}]`;
}

/** How far the service trusts a key, and what it may do. @param name in quotes, or empty */
function standingPicture(standing: TrustStatus, name: string): { readonly styled: string } {
  const { fingerprint, key_status, trust_level: level, may_endorse, capacity, capacity_used: used, alerts } = standing;
  const counts = (byStatus: Readonly<Record<string, number>>) =>
    Object.entries(byStatus)
      .filter(([, count]) => count > 0)
      .map(([status, count]) => `${count} ${status}`)
      .join(", ") || "none";
  const over = standing.over_capacity ? "; over capacity, so that each counts for less" : "";
  const route = ({ keys, factors }: TrustStatus["paths"][number]) =>
    `${factors.map((factor, i) => `${shortFingerprint(keys[i]!)} × ${factor}`).join(" → ")} = ${factors.reduce((product, factor) => product * factor, 1)}`;
  const sum = trustSum(standing);
  const styled = facts([
    ["key", [name, fingerprint, `(${key_status})`].filter(Boolean).join(" ")],
    ["trust", `${bar(level)} ${level}${may_endorse ? "" : ": too low to endorse others"}`],
    ...standing.paths.map((path) => ["over", route(path)] as const),
    ["sum", sum && `${sum} = ${level}`],
    ["endorses", `${bar(capacity ? used / capacity : 1)} ${used} of ${capacity}${over}`],
    ["received", counts(standing.received)],
    ["issued", counts(standing.issued)],
    ["alerts", alerts ? `${alerts}: somebody says that the key is compromised` : "none"],
    ["note", standing.truncated ? "there are more endorsements than were looked at" : null],
  ]);
  return { styled };
}

/** The endorsements around a key as a tree: each once, and each key's own once, under the key that is nearest to the root. */
function graphPicture({ root, nodes, edges, truncated }: Graph): { readonly styled: string } {
  const byKey = new Map(nodes.map((node) => [node.fingerprint, node]));
  const shown = new Set<Graph["edges"][number]>();
  const expanded = new Set<string>();
  const lines = [person(root)];

  function person(fingerprint: string): string {
    const node = byKey.get(fingerprint);
    const ended = node && node.status !== "active" ? ` (${node.status})` : "";
    return `${node ? `${quoted(node.pseudonym)} ` : ""}${shortFingerprint(fingerprint)}${ended}`;
  }

  function grow(fingerprint: string, before: string): void {
    expanded.add(fingerprint);
    const own = edges.filter((edge) => !shown.has(edge) && (edge.from === fingerprint || edge.to === fingerprint));
    for (const edge of own) shown.add(edge);
    for (const [i, { from, to, category, status }] of own.entries()) {
      const other = from === fingerprint ? to : from;
      const verb = from === fingerprint ? "endorses" : "is endorsed by";
      const kind = category.replace(/^x-service:/, "").replace(/_\w+$/, "");
      const isLast = i === own.length - 1;
      lines.push(`${before}${isLast ? "└─ " : "├─ "}${verb} ${person(other)}, ${kind}, ${status}`);
      const isNext = byKey.get(other)?.depth === (byKey.get(fingerprint)?.depth ?? 0) + 1;
      if (isNext && !expanded.has(other)) grow(other, `${before}${isLast ? "   " : "│  "}`);
    }
  }

  grow(root, "");
  if (truncated) lines.push("There is more than that.");
  return { styled: lines.map(printable).join("\n") };
}

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
