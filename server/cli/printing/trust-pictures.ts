/** Trust as pictures in text. */
import type { Graph, TrustStatus } from "../../client/index.js";
import { trustSum } from "../../client/signing/trust-sum.js";
import { printable } from "../terminal/printable.js";
import { facts, shortFingerprint } from "../terminal/table.js";
import { quoted } from "./names.js";

const BAR_WIDTH = 20;

/** A share from 0 to 1. */
function bar(share: number): string {
  const filled = Math.round(Math.min(1, share) * BAR_WIDTH);
  return `[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}]`;
}

/** How far the service trusts a key, and what it may do. @param name in quotes, or empty */
export function standingPicture(standing: TrustStatus, name: string): { readonly styled: string } {
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
export function graphPicture({ root, nodes, edges, truncated }: Graph): { readonly styled: string } {
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
