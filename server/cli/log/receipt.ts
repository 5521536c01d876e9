/** `cairnlog receipt`: an entry's place in the log as a file that tools of other transparency logs verify offline. */
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, ClientError } from "../../client/index.js";
import { READING_OPTIONS, readNumber, report, withClient } from "../connection.js";
import { flag, text, textOr, type Values } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { only } from "../usage.js";

const OPTIONS = {
  vkey: text(
    "VKEY",
    "the verifier key of the log's checkpoints, from a source that you trust; without it, the one that the service shows is believed",
  ),
  out: text("FILE", "the file to write (default: ENTRY.tlog-proof)"),
  bare: flag("leave the entry out: then the file is about its hash alone"),
  wait: textOr("SECONDS", "60", "how long to wait for a checkpoint that covers the entry"),
  ...READING_OPTIONS,
} as const;

/** Seconds between two looks whether a checkpoint covers the entry. */
const PAUSE_S = 1;

export const receipt = subcommand({
  forms: ["ENTRY [--out FILE] [--vkey VKEY] [--bare] [--wait SECONDS]"],
  about: `Writes a proof file for the log entry with this id (c2sp.org/tlog-proof): the entry, its inclusion proof, and the newest
checkpoint at /tlog/ with all its signatures. Everything is checked before it is written. cairnlog verify checks the file
offline, and so do tools of other transparency logs; for them the leaf is the entry's hash as hexadecimal text.

An entry that is newer than the newest checkpoint is waited for.`,
  options: OPTIONS,
  notes:
    "Exit codes: 0 written; 1 the service answered something else, or no checkpoint came; 2 the command was not understood.",
  examples: "cairnlog receipt 42",
  async run(positionals, values) {
    const id = readNumber(only(positionals, "ENTRY"), "ENTRY");
    const seconds = readNumber(values.wait, "--wait");
    const file = values.out ?? `${id}.tlog-proof`;
    await withClient(values, async (client) => {
      const { text, leafIndex, checkpoint } = await covered(client, id, values, seconds);
      writeFileSync(file, text);
      const { origin, treeSize } = checkpoint;
      const answer = { file, log_entry_id: id, leaf_index: leafIndex, origin, tree_size: treeSize };
      report(values, answer, `${file}: entry ${id}, under the checkpoint of ${treeSize} entries of ${origin}`);
    });
    return 0;
  },
});

/** @throws ClientError `not-found` without such an entry, or if no checkpoint covers it in time */
async function covered(client: Client, id: number, { vkey, bare }: Values<typeof OPTIONS>, seconds: number) {
  // An entry that is not there will not come.
  await client.log.entry(id);
  for (let waited = 0; ; waited += PAUSE_S) {
    try {
      return await client.tlog.proofFile(id, { vkey, bare });
    } catch (error) {
      if (!(error instanceof ClientError) || error.code !== "not-found" || waited >= seconds) throw error;
    }
    await sleep(PAUSE_S * 1000);
  }
}
