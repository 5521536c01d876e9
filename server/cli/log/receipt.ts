/** `cairnlog receipt`: an entry's place in the log as a file that tools of other transparency logs verify offline. */
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../../engine/error.js";
import { type AttestationBundle, type Entry, normaliseContentHash } from "../../../engine/verify/index.js";
import { type Client, ClientError } from "../../client/index.js";
import { READING_OPTIONS, readNumber, report, withClient } from "../connection.js";
import { flag, text, textOr, type Values } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { readObject } from "../objects.js";
import { hashFile } from "../signing/file-hash.js";
import { only } from "../usage.js";

const OPTIONS = {
  vkey: text(
    "VKEY",
    "the verifier key of the log's checkpoints, from a source that you trust; without it, the one that the service shows is believed",
  ),
  out: text("FILE", "the file to write (default: ENTRY.tlog-proof, FILE.tlog-proof)"),
  bare: flag("leave the entry out: then the file is about its hash alone"),
  wait: textOr("SECONDS", "60", "how long to wait for a checkpoint that covers the entry"),
  ...READING_OPTIONS,
} as const;

/** Seconds between two looks whether a checkpoint covers the entry. */
const PAUSE_S = 1;

export const receipt = subcommand({
  forms: ["ENTRY|FILE [--out FILE] [--vkey VKEY] [--bare] [--wait SECONDS]"],
  about: `Writes a proof file for the log entry with this id (c2sp.org/tlog-proof): the entry, its inclusion proof, and the newest
checkpoint at /tlog/ with all its signatures. Everything is checked before it is written. cairnlog verify checks the file
offline, and so do tools of other transparency logs; for them the leaf is the entry's hash as hexadecimal text.

Of a FILE that was attested (FILE.attestation.json is beside it) the entry of its attestation is taken, and FILE.tlog-proof is written:
cairnlog verify FILE --proof FILE.tlog-proof --policy POLICY ties the witnesses' signatures to the document.

An entry that is newer than the newest checkpoint is waited for.`,
  options: OPTIONS,
  notes:
    "Exit codes: 0 written; 1 the service answered something else, or no checkpoint came; 2 the command was not understood.",
  examples: "cairnlog receipt 42\ncairnlog receipt report.pdf",
  async run(positionals, values) {
    const named = only(positionals, "ENTRY");
    const attested = /^\d+$/.test(named) || !existsSync(named) ? null : await entryOf(named);
    const id = attested?.id ?? readNumber(named, "ENTRY");
    const seconds = readNumber(values.wait, "--wait");
    const file = values.out ?? `${attested ? named : id}.tlog-proof`;
    await withClient(values, async (client) => {
      if (attested && (await client.log.entry(id)).entry.entry_hash !== attested.entry_hash)
        throw new CairnlogError(
          "invalid-input",
          `Entry ${id} of this log is not the one of ${named}: is it another log?`,
        );
      const { text, leafIndex, checkpoint } = await covered(client, id, values, seconds);
      writeFileSync(file, text);
      const { origin, treeSize } = checkpoint;
      const answer = { file, log_entry_id: id, leaf_index: leafIndex, origin, tree_size: treeSize };
      report(values, answer, `${file}: entry ${id}, under the checkpoint of ${treeSize} entries of ${origin}`);
    });
    return 0;
  },
});

/**
 * The log entry in the attestation of a document.
 * @throws CairnlogError `invalid-input` if there is none, or if it is about another document
 */
async function entryOf(document: string): Promise<Pick<Entry, "id" | "entry_hash">> {
  const path = `${document}.attestation.json`;
  const { manifest, entry } = readObject(path) as Partial<AttestationBundle>;
  if (normaliseContentHash(manifest?.document?.content_hash) !== `sha256:${await hashFile(document)}`)
    throw new CairnlogError("invalid-input", `${path} is not about this document: its hash is another one.`);
  if (!Number.isSafeInteger(entry?.id)) throw new CairnlogError("invalid-input", `${path} names no log entry.`);
  return entry!;
}

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
