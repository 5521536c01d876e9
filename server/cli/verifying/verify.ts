/** `cairnlog verify`: checks files and their .attestation.json offline, against a pinned operator key. */
import { basename, resolve } from "node:path";
import { inputError } from "../../../engine/base/error.js";
import {
  type AttestationBundle,
  type BundleCheck,
  type BundleVerdict,
  parsePublicKey,
  verdictOf,
} from "../../../engine/verify/index.js";
import { rememberedFor } from "../connection/config-file.js";
import { READING_OPTIONS, withClient } from "../connection/connection.js";
import { namedServer, serverOf } from "../connection/service.js";
import { StateFolder } from "../connection/state.js";
import { DocumentFiles, documentOf, isDocument } from "../files/document-files.js";
import { hashFile } from "../files/file-hash.js";
import { namedFiles, SELECTION_OPTIONS } from "../files/files.js";
import { readObject } from "../files/objects.js";
import { isPrivateKeyFile } from "../files/private-key-file.js";
import { readPublicKey } from "../files/public-key.js";
import { readSigners, signerFault } from "../files/signers.js";
import { flag, subcommand, text, texts, type Values } from "../line/subcommand.js";
import { required, UsageError } from "../line/usage.js";
import { printProof, trustedBy, verifyProofFile, verifyProofFiles } from "../printing/proof-file.js";
import {
  briefText,
  bundleReport,
  countText,
  exitCode,
  NO_SUMMARY,
  namesOf,
  passedOver,
  summaryOf,
  type Trusted,
  WITHHELD_EXIT_CODE,
} from "../printing/verdict.js";
import { STATIC_OPTIONS, verifyStatic } from "../static/read.js";
import { printableJson, printableLine } from "../terminal/printable.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import { type Trust, unreadableFile, type Verified, verifyEnvelope, verifyFile, verifyParts } from "./bundles.js";
import { signerChecks, type TrustConfig } from "./online.js";

const OPTIONS = {
  "operator-key": text(
    "FILE.pem",
    "the operator's public key, from a source that you trust (default: the one that is remembered for the service)",
  ),
  server: READING_OPTIONS.server,
  state: READING_OPTIONS.state,
  attestation: text("FILE", "the attestation of the one FILE (default: all that are beside it)"),
  composite: flag(
    "the FILEs are the parts, in their order, of the one document that was attested (cairnlog composite); where parts have attestations of their own, verify those apart",
  ),
  dsse: flag(
    "each FILE is a DSSE envelope whose payload was attested (cairnlog attest --dsse): checks its own signature, too",
  ),
  "envelope-key": text(
    "FILE.pem",
    "with --dsse: the key that must have signed the envelope; without it, the key that the attester named counts",
  ),
  log: STATIC_OPTIONS.log,
  vkey: text(
    "VKEY",
    "proof files and --log: the verifier key of the log (cairnlog operator vkey), from a source that you trust",
  ),
  policy: text(
    "FILE",
    "proof files and --log: the logs and witnesses that you trust, and how many of these (c2sp.org/tlog-policy)",
  ),
  "entry-hash": text("HASH", "the hash of the entry, for one proof file that was made without it"),
  proof: text(
    "FILE.tlog-proof",
    "the proof of cairnlog receipt for the one FILE: names the witnesses; needs --vkey or --policy",
  ),
  signer: texts(
    "WHO",
    "who may have signed: a fingerprint, a public key in PEM, or a list in the form of ssh's allowed signers; may be given several times",
  ),
  online: flag("ask the service whether the signer's key was revoked, replaced or has expired: its word, not a proof"),
  trust: text("FILE.json", "with --online: your trust configuration (docs/trust.md), by which the signer is judged"),
  details: flag("of directories: all checks of each file"),
  ...SELECTION_OPTIONS,
  json: flag("one line of JSON for each receipt of each FILE"),
} as const;

export const verify = subcommand({
  forms: [
    "PATH... [--operator-key OPERATOR.pem] [--signer WHO]... [--attestation FILE.attestation.json]",
    "FILE... --composite --attestation FILE.attestation.json [--operator-key OPERATOR.pem]",
    "FILE --proof FILE.tlog-proof (--vkey VKEY | --policy FILE) [--operator-key OPERATOR.pem]",
    "FILE.tlog-proof... (--vkey VKEY | --policy FILE) [--entry-hash HASH]",
    "FILE... --log FOLDER|URL (--vkey VKEY | --policy FILE) [--signer WHO]...",
  ],
  about: `Checks each FILE against the receipts beside it (FILE.attestation.json, FILE.attestation.2.json …) without any connection: that the file is the one attested,
that the signature holds, that the log entry says so and has the hash it claims, that it is in the tree,
that the tree head is signed by the operator key you pinned, and with --signer that one of those has signed. Says of each whether
it holds, and whether the signer signed the attestation's type and statement or only the log says so. If everything holds, it ends
with who signed, as what, when, and in which log. Of several receipts, each is judged: one must hold, and none may be damaged. One
that is only of another log, of a signer whom you did not name, or of what was in the file before, does not count then.

A PATH may be a directory: then each file in it and below that is no receipt is checked, with one line for each and a count at the
end. A file that cairnlog attest leaves out is checked if it has a receipt. A signature of anybody holds without --signer; the last line says so.

With --proof, the proof of cairnlog receipt FILE must be about this document, too: it names the witnesses. With --vkey or --policy
alone each FILE is a proof file: checks that its entry has the hash it claims and is in the tree of its checkpoint, that a log of yours
has signed that, and that enough of your witnesses have.

With --log the receipts are not needed: the files of a published log say who signed each FILE, as the log recorded it. Every entry is
checked to be in the tree of the checkpoint; that the index names all of them, nothing proves. Of what the operator withholds, the
files say nothing: a receipt beside FILE tells which entry that is.

With --online the service is asked whether the signer's key was revoked, replaced or has expired, and with --trust how far you trust it.`,
  options: OPTIONS,
  notes: `Exit codes: 0 everything holds; 1 something does not; 2 the command was not understood; ${WITHHELD_EXIT_CODE} nothing is wrong, but the operator
withholds what an entry says, as another entry says: whether that was about the file, only those can show who have kept it.`,
  examples: `cairnlog verify report.pdf --operator-key operator.pub.pem --signer ada.pub.pem
cairnlog verify papers/ --operator-key operator.pub.pem --signer signers.txt
cairnlog verify report.pdf --proof report.pdf.tlog-proof --policy policy.txt
cairnlog verify one.pdf two.pdf --composite --attestation both.json.attestation.json --operator-key operator.pub.pem`,
  async run(paths, values) {
    if (!paths.length) throw new UsageError("name at least one FILE");
    const { attestation, composite, vkey, policy, proof } = values;
    if (values.log !== undefined) return verifyInLog(paths, values);
    if (proof === undefined && (vkey !== undefined || policy !== undefined)) return verifyProofs(paths, values);
    if (values["entry-hash"] !== undefined) throw new UsageError("--entry-hash goes with --vkey or --policy");
    if (proof !== undefined && vkey === undefined && policy === undefined)
      throw new UsageError("--proof goes with --vkey or --policy, which say what is trusted");
    if (values.trust !== undefined && !values.online) throw new UsageError("--trust goes with --online");
    const beside = new DocumentFiles();
    const hasReceipt = (file: string) => beside.receipts(file).length > 0;
    const { failures, hasDirectory, inside, files: found } = namedFiles(paths, values, hasReceipt);
    const isChecked = (file: string) => !inside.has(file) || hasReceipt(file) || !isPrivateKeyFile(file);
    const files = found.filter(isChecked);
    const documents = files.length > 1 ? files.filter(isDocument) : files;
    // A receipt whose document is not there would pass unread.
    const named = new Set(documents.map((file) => resolve(file)));
    const alone = files.find((file) => !isDocument(file) && !named.has(resolve(documentOf(file)!)));
    if (alone !== undefined && attestation === undefined)
      throw new UsageError(`${alone} is a receipt: name the document that it is about`);
    if ((attestation !== undefined || proof !== undefined) && (documents.length > 1 || hasDirectory) && !composite)
      throw new UsageError("--attestation and --proof go with one FILE, unless the FILEs are a --composite");
    const compositePath = composite ? required(attestation, "--attestation") : undefined;
    if (composite && proof !== undefined) throw new UsageError("--proof goes with one FILE");
    const envelopeKey = values["envelope-key"];
    if (envelopeKey !== undefined && !values.dsse) throw new UsageError("--envelope-key goes with --dsse");
    if (values.dsse && composite) throw new UsageError("an envelope is no part of a --composite");
    const isProofAlone = proof !== undefined && attestation === undefined && !beside.receipts(documents[0]!).length;
    if (isProofAlone) return verifyProofOf(documents[0]!, proof, values);
    const trusted = trustedKey(values);
    const trust: Trust = { operatorKey: trusted.key, signers: readSigners(values.signer) };
    const run = new Run(values, trusted, trust, hasDirectory && !values.details);
    if (compositePath !== undefined) {
      const verified = await verifyParts(paths, compositePath, trust);
      await run.judge(compositePath, [{ receipt: compositePath, verified }], { files: paths });
      return run.end();
    }
    const key = envelopeKey === undefined ? undefined : readPublicKey(envelopeKey);
    for (const file of documents) {
      const receipts = attestation === undefined ? beside.receipts(file) : [attestation];
      const read: Read[] = [];
      for (const receipt of receipts.length ? receipts : [`${file}.attestation.json`]) {
        const checked = values.dsse ? verifyEnvelope(file, receipt, trust, key) : verifyFile(file, receipt, trust);
        read.push({ receipt, verified: await checked.catch(unreadableFile) });
      }
      await run.judge(file, read, { file });
    }
    for (const failure of failures) run.fail(failure);
    if (!documents.length) run.fail(inputError("There is no file to verify."));
    return run.end();
  },
});

/** A receipt, and what was found out about it offline. */
interface Read {
  readonly receipt: string;
  readonly verified: Verified;
}

/** A receipt with everything that was asked for. */
interface Judged {
  readonly receipt: string;
  readonly bundle: AttestationBundle;
  readonly verdict: BundleVerdict;
  readonly witnesses: readonly string[] | null;
}

/** Checks that a receipt fails if it is of other content, of another signer, not the one that a proof is about, or withheld. */
const ELSEWHERE: ReadonlySet<BundleCheck["name"]> = new Set(["file", "signer", "witnesses", "withheld"]);

/** The operator keys that a receipt names. */
const keysOf = ({ tree_head, operators = [] }: AttestationBundle): readonly string[] => [
  tree_head.key_id,
  ...operators.map(({ key_id }) => key_id),
];

/** The verdicts of one command: further checks, printing, and the count at the end. */
class Run {
  readonly #values: Values<typeof OPTIONS>;
  readonly #trusted: Trusted;
  readonly #trust: Trust;
  readonly #isBrief: boolean;
  #count = 0;
  #wrong = 0;
  #withheld = 0;

  constructor(values: Values<typeof OPTIONS>, trusted: Trusted, trust: Trust, isBrief: boolean) {
    this.#values = values;
    this.#trusted = trusted;
    this.#trust = trust;
    this.#isBrief = isBrief;
  }

  /** Prints the verdict on each receipt of a file, after what the options ask for beside it. */
  async judge(file: string, read: readonly Read[], named: object): Promise<void> {
    const judged: Judged[] = [];
    for (const one of read) judged.push(await this.#judged(one));
    const isProven = judged.some(({ verdict }) => verdict.valid);
    const isPassed = (one: Judged) => isProven && !one.verdict.valid && this.#isElsewhere(one);
    for (const one of judged)
      this.#print(judged.length > 1 ? `${file}, ${basename(one.receipt)}` : file, one, isPassed(one), named);
    this.#count++;
    const counted = judged.filter((one) => !one.verdict.valid && !isPassed(one));
    if (counted.some(({ verdict }) => verdict.verdict === "invalid")) this.#wrong++;
    else if (counted.length) this.#withheld++;
  }

  async #judged({ receipt, verified: { bundle: given, ...offline } }: Read): Promise<Judged> {
    const { online, proof } = this.#values;
    const bundle = given as AttestationBundle;
    const checks = [...offline.checks];
    let witnesses: readonly string[] | null = null;
    if (offline.valid && proof !== undefined) {
      const witnessed = await this.#witnessed(proof, bundle);
      checks.push(witnessed.check);
      witnesses = witnessed.witnesses;
    }
    if (offline.valid && online) checks.push(...(await this.#standing(bundle)));
    return { receipt, bundle, verdict: verdictOf(checks, offline.signed, offline.withheld_by), witnesses };
  }

  /** Whether nothing is wrong with a receipt but that it is about something else than what was asked. */
  #isElsewhere({ bundle, verdict }: Judged): boolean {
    return verdict.checks.every(
      ({ name, ok }) =>
        ok || ELSEWHERE.has(name) || (name === "tree-head" && !keysOf(bundle).includes(this.#trusted.key.fingerprint)),
    );
  }

  #print(file: string, { receipt, bundle, verdict, witnesses }: Judged, isPassed: boolean, named: object): void {
    const summary = verdict.valid
      ? summaryOf(bundle, verdict, {
          log: this.#trusted,
          witnesses,
          isNamed: this.#trust.signers !== undefined,
          isOnline: this.#values.online,
        })
      : null;
    if (this.#values.json)
      console.log(printableJson({ ...named, receipt, ...verdict, ...(summary?.json ?? NO_SUMMARY) }));
    else if (isPassed) console.log(passedOver(file, verdict));
    else if (this.#isBrief) console.log(briefText(file, verdict, summary));
    else console.log(bundleReport(file, verdict, summary));
  }

  /** A directory that cannot be read: what is in it was not verified. */
  fail(error: Error): void {
    this.#wrong++;
    console.error(printableLine(isSystemError(error) ? systemSentence(error) : error.message));
  }

  /** @returns the exit code */
  end(): number {
    const found = { wrong: this.#wrong, withheld: this.#withheld };
    // Without a file, what has failed was said.
    if (this.#isBrief && this.#count && !this.#values.json)
      console.log(countText(this.#count, found, this.#trust.signers !== undefined, this.#values.online));
    return exitCode(found);
  }

  async #witnessed(
    path: string,
    { entry }: AttestationBundle,
  ): Promise<{ check: BundleCheck; witnesses: readonly string[] }> {
    const { vkey, policy } = this.#values;
    const verdict = await verifyProofFile(path, trustedBy(vkey, policy), entry.entry_hash);
    const { reason, origin, tree_size, witnesses } = verdict;
    // The hash is in the tree, whether the file has the payload or not.
    const holds = verdict.verdict !== "invalid";
    const detail = holds
      ? `The entry is in the tree of ${tree_size} leaves of ${origin} that ${namesOf(witnesses)} cosigned.`
      : reason!;
    return { check: { name: "witnesses", ok: holds, detail }, witnesses };
  }

  async #standing(bundle: AttestationBundle): Promise<readonly BundleCheck[]> {
    const { trust } = this.#values;
    const config = trust === undefined ? undefined : (readObject(trust) as unknown as TrustConfig);
    return withClient(this.#values, (client) => signerChecks(client, bundle, config));
  }
}

/** A document and a proof file, without an attestation file: the proof's entry must be about the document. */
async function verifyProofOf(file: string, proof: string, values: Values<typeof OPTIONS>): Promise<number> {
  const verdict = await verifyProofFile(proof, trustedBy(values.vkey, values.policy));
  const document = `sha256:${await hashFile(file)}`;
  const signers = readSigners(values.signer);
  const { entry } = verdict;
  if (verdict.verdict === "withheld") return printProof(file, verdict, values.json);
  const fault = !verdict.valid
    ? verdict.reason
    : entry?.payload?.document_hash !== document
      ? "The proof is not about this document."
      : signerFault(entry, signers);
  return printProof(
    file,
    fault === null ? verdict : { ...verdict, valid: false, verdict: "invalid", reason: fault },
    values.json,
  );
}

/** The operator key of the option, or else the one that is remembered for the service. @throws UsageError without either */
function trustedKey(values: Values<typeof OPTIONS>): Trusted {
  const { "operator-key": file } = values;
  if (file !== undefined) {
    const key = readPublicKey(file);
    return { key, url: null, log: `the log of operator key ${key.fingerprint}` };
  }
  const server = namedServer(values.server);
  const set = server && rememberedFor(server).operator_key;
  const pem = set || (server && new StateFolder(serverOf(server), values.state).loadMemory()?.operator_key);
  if (!server)
    throw new UsageError(
      "--operator-key is missing: name it, or name by --server or cairnlog config the service whose operator key is remembered",
    );
  if (!pem)
    throw new UsageError(
      `no operator key of ${server} is remembered yet: name it by --operator-key, or have it pinned by cairnlog log head --server ${server}`,
    );
  const key = parsePublicKey(pem);
  const how = set ? "set by cairnlog config" : "pinned when it was first seen";
  return { key, url: server, log: `the log at ${server}, operator key ${key.fingerprint} (${how})` };
}

/** The entries of a published log in place of receipts. */
function verifyInLog(files: readonly string[], values: Values<typeof OPTIONS>): Promise<number> {
  const { attestation, composite, dsse, online, proof, details } = values;
  const isOfReceipts = composite || dsse || online || details || values["operator-key"] !== undefined;
  if (isOfReceipts || attestation !== undefined || proof !== undefined || values["entry-hash"] !== undefined)
    throw new UsageError("--log goes with --vkey, --policy, --signer and --json alone");
  return verifyStatic(files, values);
}

/** Proof files in place of attestations. */
function verifyProofs(files: readonly string[], values: Values<typeof OPTIONS>): number | Promise<number> {
  const { "operator-key": operatorKey, attestation, composite, dsse, vkey, policy, json } = values;
  if (
    operatorKey !== undefined ||
    attestation !== undefined ||
    composite ||
    dsse ||
    values.online ||
    values.signer.length
  )
    throw new UsageError(
      "--vkey and --policy are for proof files, and the other options for attestations; --proof names the proof file of a document",
    );
  const entryHash = values["entry-hash"];
  if (entryHash !== undefined && files.length > 1) throw new UsageError("--entry-hash goes with one FILE");
  return verifyProofFiles(files, { vkey, policy, entryHash, json });
}
