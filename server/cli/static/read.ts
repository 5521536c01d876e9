/** Reads a published log of plain files in place of a service: `cairnlog log … --log`, `cairnlog verify FILE --log`. */
import { withPayload } from "../../../engine/verify/bundle/inclusion.js";
import { isPayloadOf, isWithheld, membersIn, withholdingIn } from "../../../engine/verify/events/withheld.js";
import { type AttestationBundle, type Entry, encodeBase64, kindOf } from "../../../engine/verify/index.js";
import { ClientError } from "../../client/base/error.js";
import { type PublishedEntry, type PublishedKey, StaticLog } from "../../client/static/log.js";
import { termOf } from "../../client/static/run.js";
import { patientFetch, throughLimits } from "../../outgoing/patience.js";
import { printAnswer, readNumber } from "../connection/connection.js";
import { DocumentFiles } from "../files/document-files.js";
import { fileFault, hashFile } from "../files/file-hash.js";
import { readObject } from "../files/objects.js";
import { readSigners, signerFault } from "../files/signers.js";
import { text } from "../line/subcommand.js";
import { none, UsageError } from "../line/usage.js";
import { endSentences } from "../printing/ending.js";
import { entriesHeading, entryFacts, entryRow } from "../printing/entry-text.js";
import { quoted } from "../printing/names.js";
import { printProof, trustedBy } from "../printing/proof-file.js";
import { exitCode } from "../printing/verdict.js";
import { printable, printableJson } from "../terminal/printable.js";
import { type facts, shortFingerprint } from "../terminal/table.js";
import { filesAt } from "./place.js";

// What a published log withholds of a file: nothing there has the file's hash any more, so what its readers have kept tells of it.

/** A withheld entry about a file, and the operator's words. */
interface WithheldAbout extends PublishedEntry {
  readonly withheld_by: number;
  readonly reason: string;
}

/**
 * The withheld entry that a receipt beside a file is of, or that the index still names for it; undefined if there is none.
 * @param hash of the file
 * @param isMeant whether the payload that was kept is by a signer who is asked for
 */
async function withheldAbout(
  log: StaticLog,
  file: string,
  hash: string,
  isMeant: (kept: Entry) => boolean,
): Promise<WithheldAbout | undefined> {
  for (const receipt of new DocumentFiles().receipts(file)) {
    const kept = keptIn(receipt);
    if (kept?.payload?.document_hash !== `sha256:${hash}` || !isMeant(kept)) continue;
    const found = await log.entry(kept.id).catch(orNone);
    if (found && isPayloadOf(found.entry, kept.payload) && isWithheld(found.entry)) return told(log, found);
  }
  // An index from before, in a cache for example: whether the entry was about the file, nothing proves.
  for (const leafIndex of await log.leavesAbout(hash)) {
    const found = await log.at(leafIndex);
    if (isWithheld(found.entry)) return told(log, found);
  }
  return undefined;
}

async function told(log: StaticLog, { entry, leafIndex }: PublishedEntry): Promise<WithheldAbout> {
  const by = (await log.entry(entry.withheld_by!)).entry;
  const reason = `The operator withholds this, as entry ${by.id} says: ${withholdingIn(by)!.reason}`;
  return { entry, leafIndex, withheld_by: by.id, reason };
}

/** The entry in a receipt, with its payload; undefined for a file that is none. */
function keptIn(receipt: string): Entry | undefined {
  try {
    return withPayload(readObject(receipt) as unknown as AttestationBundle).entry;
  } catch {
    // It counts for nothing here: `cairnlog verify FILE` says what is wrong with it.
    return undefined;
  }
}

function orNone(error: unknown): undefined {
  if (error instanceof ClientError && error.code === "not-found") return undefined;
  throw error;
}

/** Options of commands that read a service or published files. */
export const STATIC_OPTIONS = {
  log: text(
    "FOLDER|URL",
    "in place of a service, the files of cairnlog publish --entries: a folder, s3://BUCKET/PREFIX, or the address before /checkpoint; with --vkey or --policy",
  ),
  vkey: text("VKEY", "with --log: the key that signs the log's checkpoints, from a source that you trust"),
  policy: text("FILE", "with --log: the logs and witnesses that you trust, and how many of these (tlog-policy)"),
} as const;

interface StaticValues {
  readonly log?: string | undefined;
  readonly vkey?: string | undefined;
  readonly policy?: string | undefined;
  readonly json: boolean;
}

/** @throws UsageError without a place or a key; ClientError as `StaticLog.open` does */
async function openLog({ log, vkey, policy }: StaticValues): Promise<StaticLog> {
  if (log === undefined) throw new UsageError("--log is missing");
  if (vkey === undefined && policy === undefined)
    throw new UsageError("--log goes with --vkey or --policy, which say what is trusted");
  return StaticLog.open(
    filesAt(log, (send) => (send ? send : patientFetch(throughLimits()))),
    trustedBy(vkey, policy),
  );
}

/** Options of `cairnlog log` that ask for what files do not have. */
const SERVICE_ONLY = ["event-type", "tags", "title", "tree-size", "follow", "server", "operator-key"] as const;

type LogValues = StaticValues & {
  readonly [name in (typeof SERVICE_ONLY)[number]]?: string | boolean | undefined;
} & { readonly fingerprint?: string | undefined; readonly limit: string; readonly lines: string };

type Action = (log: StaticLog, operands: readonly string[], values: LogValues) => Promise<void>;

const ACTIONS: Readonly<Record<string, Action>> = { show, search, proof, tail, checkpoint };

/** Does an action of `cairnlog log`. @throws UsageError for one that needs a service */
export async function readStatic(action: string, operands: readonly string[], values: LogValues): Promise<number> {
  const wanted = SERVICE_ONLY.find((name) => values[name] !== undefined && values[name] !== false);
  const run = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (!run || wanted !== undefined)
    throw new UsageError(
      `published files cannot answer ${run ? `--${wanted}` : `cairnlog log ${action}`}: they are entries, tiles and a checkpoint; ask the service (--server)`,
    );
  await run(await openLog(values), operands, values);
  return 0;
}

async function show(log: StaticLog, operands: readonly string[], values: LogValues): Promise<void> {
  if (!operands.length) throw new UsageError("name at least one ENTRY");
  for (const id of operands.map((operand) => readNumber(operand, "ENTRY"))) {
    const { entry, leafIndex } = await log.entry(id);
    printAnswer(values, entry, entryFacts(entry, leafIndex, provenBy(log)));
  }
}

function provenBy({ verdict: { checkpoint, cosigned } }: StaticLog): Parameters<typeof facts>[0] {
  const { origin, treeSize, rootHash } = checkpoint;
  const witnesses = cosigned.map(({ witness }) => witness.name).join(", ");
  return [
    ["proven", `in the tree of ${treeSize} leaves, ${rootHash}`],
    ["checkpoint", `of ${origin}, cosigned by ${witnesses || "nobody"}`],
  ];
}

async function search(log: StaticLog, [term, more]: readonly string[], values: LogValues): Promise<void> {
  if (more !== undefined) throw new UsageError(`${more} is one argument too many`);
  const hash = term ?? values.fingerprint;
  if (hash === undefined || termOf(hash) === undefined || (term !== undefined && values.fingerprint !== undefined))
    throw new UsageError(
      "published files have an index of whole hashes alone: name that of a document, or the fingerprint of a key; the service finds words and beginnings (--server)",
    );
  const limit = readNumber(values.limit, "--limit");
  const list = listing(log, values);
  let count = 0;
  for await (const { entry } of log.about(hash)) {
    if (count++ === limit) return console.error(`There are more than ${limit} (--limit).`);
    await list(entry);
  }
  if (!count) console.error(printable(`No entry is about ${hash}, says the index.`));
}

async function proof(log: StaticLog, [leaf, ...more]: readonly string[], values: LogValues): Promise<void> {
  none(more);
  const index = readNumber(leaf, "LEAF");
  if (index >= log.size) throw new UsageError(`the checkpoint covers ${log.size} leaves, and LEAF is counted from 0`);
  const { origin, rootHash: root_hash } = log.verdict.checkpoint;
  const path = (await log.inclusion(index)).map(encodeBase64);
  const proven = { origin, tree_size: log.size, root_hash, leaf_index: index, proof: path };
  printAnswer(values, proven, JSON.stringify(proven, null, 2));
}

async function tail(log: StaticLog, operands: readonly string[], values: LogValues): Promise<void> {
  none(operands);
  const list = listing(log, values);
  for await (const { entry } of log.entries(Math.max(0, log.size - readNumber(values.lines, "--lines"))))
    await list(entry);
}

async function checkpoint(log: StaticLog, operands: readonly string[], values: LogValues): Promise<void> {
  none(operands);
  printAnswer(values, { note: log.note, ...log.verdict.checkpoint }, log.note.trimEnd());
}

/** Entries as a list, with the names of keys from their registrations. */
function listing(log: StaticLog, values: StaticValues): (entry: Entry) => Promise<void> {
  const names = new Map<string, Promise<string>>();
  const of = (fingerprint: string) => {
    const name = names.get(fingerprint) ?? nameOf(log, fingerprint);
    names.set(fingerprint, name);
    return name;
  };
  const person = async (fingerprint: string) =>
    [await of(fingerprint), shortFingerprint(fingerprint)].filter(Boolean).join(" ");
  let isFirst = true;
  return async (entry) => {
    if (isFirst && !values.json) console.log(entriesHeading());
    isFirst = false;
    console.log(values.json ? printableJson(entry) : await entryRow(entry, { of, person }));
  };
}

/** What the key is called by its entries, as a service names it; empty if the index has none. */
async function nameOf(log: StaticLog, fingerprint: string): Promise<string> {
  const key = termOf(fingerprint) === undefined ? null : await log.key(fingerprint);
  return key ? quoted(key.pseudonym) : "";
}

const VALID = { valid: true, verdict: "valid", withheld_by: null, reason: null } as const;
const INVALID = { valid: false, verdict: "invalid", withheld_by: null } as const;
const WITHHELD = { valid: false, verdict: "withheld" } as const;

/** Says who signed files, by the entries about them. @returns the exit code */
export async function verifyStatic(
  files: readonly string[],
  values: StaticValues & { readonly signer: readonly string[] },
): Promise<number> {
  const signers = readSigners(values.signer);
  const log = await openLog(values);
  const frozen = await log.end();
  const { origin, treeSize: tree_size } = log.verdict.checkpoint;
  const witnesses = log.verdict.cosigned.map(({ witness }) => witness.name);
  const isMeant = (entry: Entry) => signerFault(entry, signers) === null;
  const count = { wrong: 0, withheld: 0 };
  for (const file of files) {
    const found: PublishedEntry[] = [];
    let hash: string;
    try {
      hash = await hashFile(file);
    } catch (error) {
      count.wrong++;
      const unread = { ...INVALID, reason: fileFault(error), entry: null, leaf_index: null };
      printProof(file, { origin, tree_size, witnesses, ...unread }, values.json);
      continue;
    }
    for await (const one of log.about(hash)) found.push(one);
    const signed = found.filter(({ entry }) => kindOf(entry.event_type)?.scope === "attestations");
    const named = signed.filter(({ entry }) => isMeant(entry));
    const verdict = { origin, tree_size, witnesses, ...(frozen && { frozen }) };
    for (const { entry, leafIndex } of named) {
      const key = await keyOf(log, entry);
      const told = { ...verdict, key };
      printProof(file, { ...told, ...VALID, entry, leaf_index: leafIndex }, values.json);
      if (key && !values.json) await printKey(log, key);
    }
    if (named.length) continue;
    const withheld = await withheldAbout(log, file, hash, isMeant);
    if (withheld) {
      count.withheld++;
      const { leafIndex: leaf_index, ...told } = withheld;
      printProof(file, { ...verdict, ...WITHHELD, ...told, leaf_index }, values.json);
      continue;
    }
    count.wrong++;
    const faults = new Set(signed.map(({ entry }) => signerFault(entry, signers)));
    const reason = faults.size
      ? [...faults].join(" ")
      : `No entry of the ${tree_size} is about this file, says the index.`;
    printProof(file, { ...verdict, ...INVALID, reason, entry: null, leaf_index: null }, values.json);
  }
  if (frozen && !values.json) console.log(printable(endSentences(frozen)));
  return exitCode(count);
}

/** The key that signed, at the checkpoint; null if the index has no entry that records it. */
async function keyOf(log: StaticLog, signed: Entry): Promise<PublishedKey | null> {
  const { signer_key_fingerprint: fingerprint } = membersIn(signed);
  if (typeof fingerprint !== "string" || termOf(fingerprint) === undefined) return null;
  return log.key(fingerprint);
}

/** What the log has about a key. */
async function printKey(log: StaticLog, { fingerprint, pseudonym, status }: PublishedKey): Promise<void> {
  console.log(printable(`  key: ${quoted(pseudonym)} is ${status} at this checkpoint, says the index`));
  for await (const { entry } of log.about(fingerprint)) {
    const { id, event_type, timestamp } = entry;
    const name = membersIn(entry).pseudonym;
    const called = typeof name === "string" ? ` ${quoted(name)}` : "";
    console.log(printable(`  key: ${kindOf(event_type)?.label ?? event_type}${called}, ${timestamp}, entry ${id}`));
  }
}
