/** `cairnlog promote`: has a node of a replicated log lead it. */
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../../engine/base/error.js";
import { LEASE_MS, PostgresJournal } from "../../../engine/journal/postgres/journal.js";
import type { Lead } from "../../../engine/journal/postgres/statements.js";
import { flag, subcommand } from "../line/subcommand.js";
import { none, UsageError } from "../line/usage.js";
import { settingsOf } from "../operate/environment.js";
import { printableJson } from "../terminal/printable.js";
import { signOfLife } from "./signs.js";

const PATIENCE_MS = 30_000;

export const promote = subcommand({
  forms: [""],
  about: `Asks the node that leads a replicated log to give the lead to the node whose address SERVICE_NODE_URL is, which must be running.
The leader answers what it has accepted first; no entry is lost, and writers are refused for about a second. A leader that
is dead needs no promotion: another node takes the lead by itself.`,
  options: { json: flag("answer in JSON") },
  notes: `Exit codes: 0 the node leads; 1 it did not take the lead in ${PATIENCE_MS / 1000} seconds, or PostgreSQL does not answer; 2 the command or a
setting was not understood.`,
  examples: "SERVICE_NODE_URL=https://b.log.example cairnlog promote",
  async run(operands, values) {
    none(operands);
    const { replication: url, replicationVerify: verification, nodeUrl } = settingsOf();
    if (url === null) throw new UsageError("SERVICE_REPLICATION is not set");
    if (nodeUrl === null) throw new UsageError("SERVICE_NODE_URL is not set: it says which node is to lead");
    const journal = await PostgresJournal.open({ url, verification, nodeUrl });
    try {
      const before = await journal.look();
      if (leads(before, nodeUrl)) {
        const alive = await signOfLife(journal, before, LEASE_MS);
        if (alive && leads(alive, nodeUrl)) return said(values.json, nodeUrl, alive.epoch);
      }
      await journal.want(nodeUrl);
      for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await sleep(100)) {
        const lead = await journal.look();
        if (leads(lead, nodeUrl) && lead.epoch > before.epoch) return said(values.json, nodeUrl, lead.epoch);
      }
      throw new CairnlogError(
        "precondition-failed",
        `${nodeUrl} has not taken the lead. Is it running, and up to date?`,
      );
    } finally {
      journal.close();
    }
  },
});

/** Whether the journal names this node; it may be dead. */
const leads = ({ holder, url }: Lead, nodeUrl: string): boolean => holder !== null && url === nodeUrl;

function said(json: boolean, leader: string, epoch: number): number {
  console.log(json ? printableJson({ leader, epoch }) : `${leader} leads`);
  return 0;
}
