/** `cairnlog promote`: has a node of a replicated log lead it. */
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../../engine/base/error.js";
import { PostgresJournal } from "../../../engine/journal/postgres/journal.js";
import { flag, subcommand } from "../line/subcommand.js";
import { none, UsageError } from "../line/usage.js";
import { settingsOf } from "../operate/environment.js";
import { printableJson } from "../terminal/printable.js";

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
      if (before.url === nodeUrl && before.holder !== null) return said(values.json, nodeUrl, before.epoch);
      await journal.want(nodeUrl);
      for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await sleep(100)) {
        const { holder, url: leader, epoch } = await journal.look();
        if (holder !== null && leader === nodeUrl && epoch > before.epoch) return said(values.json, nodeUrl, epoch);
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

function said(json: boolean, leader: string, epoch: number): number {
  console.log(json ? printableJson({ leader, epoch }) : `${leader} leads`);
  return 0;
}
