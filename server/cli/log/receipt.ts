/** `cairnlog receipt`: an entry's place in the log as a file that tools of other transparency logs verify offline. */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../../engine/base/error.js";
import {
  type AttestationBundle,
  type Entry,
  normaliseContentHash,
  parseTlogProof,
} from "../../../engine/verify/index.js";
import { type Client, ClientError } from "../../client/index.js";
import { printAnswer, READING_OPTIONS, readNumber, withClient } from "../connection/connection.js";
import { DocumentFiles } from "../files/document-files.js";
import { hashFile } from "../files/file-hash.js";
import { readObject } from "../files/objects.js";
import { writeWhole } from "../files/whole-file.js";
import { flag, subcommand, text, textOr, type Values } from "../line/subcommand.js";
import { only, UsageError } from "../line/usage.js";

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

Of a FILE that was attested the entries of the receipts beside it are taken, as far as they are in this log, and FILE.tlog-proof is
written: cairnlog verify FILE --proof FILE.tlog-proof --policy POLICY ties the witnesses' signatures to the document. The proof of
another entry is never overwritten: the next one is FILE.tlog-proof.2.

An entry that is newer than the newest checkpoint is waited for.`,
  options: OPTIONS,
  notes:
    "Exit codes: 0 written; 1 the service answered something else, or no checkpoint came; 2 the command was not understood.",
  examples: "cairnlog receipt 42\ncairnlog receipt report.pdf",
  async run(positionals, values) {
    const named = only(positionals, "ENTRY");
    const beside = new DocumentFiles();
    const attested = /^\d+$/.test(named) || !existsSync(named) ? null : await entriesOf(named, beside);
    const ids = attested ? [] : [readNumber(named, "ENTRY")];
    const seconds = readNumber(values.wait, "--wait");
    await withClient(values, async (client) => {
      for (const { id, entry_hash } of attested ?? []) if ((await entryHashOf(client, id)) === entry_hash) ids.push(id);
      if (!ids.length)
        throw new CairnlogError(
          "invalid-input",
          `Entry ${attested![0]!.id} of this log is not the one of ${named}: is it another log?`,
        );
      if (values.out !== undefined && ids.length > 1)
        throw new UsageError(`--out goes with one entry; this log has ${ids.join(", ")} of ${named}`);
      for (const id of ids) {
        const { text, leafIndex, checkpoint } = await covered(client, id, values, seconds);
        const { origin, treeSize } = checkpoint;
        const file = values.out ?? beside.keep(named, "proof", text, (kept) => identity(kept) === identity(text));
        if (values.out !== undefined) writeWhole(file, text);
        const answer = { file, log_entry_id: id, leaf_index: leafIndex, origin, tree_size: treeSize };
        printAnswer(values, answer, `${file}: entry ${id}, under the checkpoint of ${treeSize} entries of ${origin}`);
      }
    });
    return 0;
  },
});

/**
 * The log entries in the receipts of a document.
 * @throws CairnlogError `invalid-input` if there is none, or if all are about another document
 */
async function entriesOf(
  document: string,
  beside: DocumentFiles,
): Promise<readonly Pick<Entry, "id" | "entry_hash">[]> {
  const hash = `sha256:${await hashFile(document)}`;
  const paths = beside.receipts(document);
  if (!paths.length)
    throw new CairnlogError("invalid-input", `${document} has no receipt (${basename(document)}.attestation.json).`);
  const bundles = paths.map((path) => readObject(path) as Partial<AttestationBundle>);
  const own = bundles.filter(({ manifest }) => normaliseContentHash(manifest?.document?.content_hash) === hash);
  if (!own.length)
    throw new CairnlogError("invalid-input", `${paths[0]} is not about this document: its hash is another one.`);
  const entries = own.flatMap(({ entry }) => (entry && Number.isSafeInteger(entry.id) ? [entry] : []));
  if (!entries.length) throw new CairnlogError("invalid-input", `${paths[0]} names no log entry.`);
  return entries;
}

/** The hash of an entry; undefined if the log has none with this number. @throws ClientError */
async function entryHashOf(client: Client, id: number): Promise<string | undefined> {
  try {
    return (await client.log.entry(id)).entry.entry_hash;
  } catch (error) {
    if (error instanceof ClientError && error.code === "not-found") return undefined;
    throw error;
  }
}

/** What a proof file is about: the entry and the log, without the checkpoint and the path to it. Null for no proof file. */
function identity(text: string): string | null {
  try {
    const { index, extra, checkpoint } = parseTlogProof(text);
    return `${index} ${extra && Buffer.from(extra)} ${checkpoint.split("\n", 1)[0]}`;
  } catch {
    return null;
  }
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
