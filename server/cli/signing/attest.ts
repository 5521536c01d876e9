/**
 * `cairnlog attest`: hashes files and signs on this machine, submits the attestations, verifies the receipts, and keeps
 * them beside the files. Neither a file nor the private key leaves this machine.
 */

import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { hiddenTitle, type PrivateTitle } from "../../../engine/verify/events/hashed.js";
import { type EnvelopeSubject, envelopeSubject, type Manifest } from "../../../engine/verify/index.js";
import type { Client, Subject } from "../../client/index.js";
import { byTheClock } from "../../outgoing/patience.js";
import { CONNECTION_OPTIONS, requireKeyFile, withClient } from "../connection/connection.js";
import { explain } from "../connection/explain.js";
import { wellFormed } from "../files/disk-names.js";
import { DocumentFiles, type DocumentPlaces, OutFile } from "../files/document-files.js";
import { hashForOthers } from "../files/file-hash.js";
import { type NamedFiles, namedFiles, SELECTION_OPTIONS } from "../files/files.js";
import { readObject } from "../files/objects.js";
import { isPrivateKeyFile } from "../files/private-key-file.js";
import { readPublicKey } from "../files/public-key.js";
import { readSecret } from "../files/secrets.js";
import { flag, subcommand, text, type Values } from "../line/subcommand.js";
import { required, UsageError } from "../line/usage.js";
import { interruptible } from "../terminal/interrupt.js";
import { isAgreedTo, leftOutWords, limitWords, listPublic } from "./before-attesting.js";
import { keptTitle } from "./kept-receipt.js";
import { AttestRun } from "./run.js";

/** Bytes of the salt of a private title: as many as its hash has. */
const SALT_BYTES = 32;

const OPTIONS = {
  type: text("TYPE", "authorship (default), editorial_review, peer_review, publication, or an https: predicate"),
  title: text(
    "TITLE",
    "title of the document (default: the file's name; of an envelope, the name of its first subject)",
  ),
  "private-title": flag(
    "the log gets a salted hash of the title alone; title and salt stay in the receipt, without which nobody can tell them",
  ),
  pseudonym: text("NAME", "your display name, if the key has not signed one in this log yet"),
  intent: text("TEXT", "a statement of intent, for everybody to read"),
  "password-file": text("FILE", "a file that holds the key's password, where it has one; - reads standard input"),
  manifest: flag(
    "each file is a manifest (JSON) to be signed, with the attestations that are in it; type and statement are signed, too, unless the signatures of such attestations cover the document",
  ),
  dsse: flag(
    "the FILE is a DSSE envelope with an in-toto statement: its payload is attested, under the statement's predicate as type, after the envelope's own signature was verified",
  ),
  "envelope-key": text("FILE.pem", "with --dsse: the public key that must have signed the envelope; it is recorded"),
  ...SELECTION_OPTIONS,
  out: text(
    "FILE|DIR",
    "where the receipt goes, or those of several files, below DIR as below the directory that was named (default: beside each file)",
  ),
  wait: flag("wait for the service's limit, however long it lasts"),
  "dry-run": flag("list the files whose names and hashes would become public, and send nothing"),
  yes: flag("do not ask on a terminal before a directory, or a hundred files, become public"),
  ...CONNECTION_OPTIONS,
} as const;

export const attest = subcommand({
  forms: ["PATH... --key KEY.pem"],
  about: `Hashes each file, signs a manifest of it with KEY, submits manifest and signature, checks the receipt, and writes
FILE.attestation.json beside the file. The file itself is not sent. The receipt of another attestation (signer, type, statement, log,
or what was in the file) is never overwritten: the next one is FILE.attestation.2.json. cairnlog verify reads all of them.

A PATH is a file, or a directory: then each regular file in it and in the directories below is attested, in the order of
their paths, without symbolic links and what cairnlog keeps beside files. The name and the hash of each become public for ever.
Left out of a directory are names that begin with a dot, node_modules, backups of editors and what .gitignore names, unless --all is
given; and private keys always, which are told by their content. Several files are submitted together, up to 1000 at once. One that
cannot be read, or that the service refuses, is reported, and the others are attested. The command can be repeated: a file that has its
receipt is passed over, and one that was attested before gets its first receipt again. A limit of the service that ends within a minute
is waited for, and every one with --wait.`,
  options: OPTIONS,
  notes: "Exit codes: 0 every file is attested; 1 one is not; 2 the command was not understood.",
  examples: `cairnlog attest report.pdf --key me.pem
cairnlog attest papers/ --key me.pem --exclude '*.tmp'
cairnlog attest build.intoto.json --dsse --envelope-key builder.pub.pem --key me.pem`,
  async run(paths, values) {
    if (values["private-title"] && (values.manifest || values.dsse))
      throw new UsageError("--private-title goes with files that are no manifests or envelopes");
    if (values.manifest && values.title !== undefined) throw new UsageError("a manifest has its own title");
    if (!paths.length) throw new UsageError("name at least one FILE");
    const named = namedFiles(paths, values);
    const { failures, hasDirectory } = named;
    // A key that was named itself is refused, so that its user learns of it.
    const keys = named.files.filter((file) => named.inside.has(file) && isPrivateKeyFile(file));
    const files = named.files.filter((file) => !keys.includes(file));
    const isAlone = files.length === 1 && !hasDirectory;
    if (values.title !== undefined && !isAlone) throw new UsageError("--title goes with one FILE");
    const envelope = await readEnvelope(values, isAlone ? files[0] : undefined);
    for (const sentence of leftOutWords(named.leftOut, keys)) console.error(sentence);
    if (values["dry-run"]) {
      for (const failure of failures) console.error(`cairnlog: ${explain(failure)}`);
      listPublic(files, values);
      return failures.length ? 1 : 0;
    }
    requireKeyFile(values);
    const { title, type = envelope?.type, pseudonym, intent, "password-file": passwordFile } = values;
    const password = passwordFile === undefined ? undefined : readSecret(passwordFile);
    const options = { type, pseudonym, intent, password };
    if (!values.yes && !(await isAgreedTo(files, hasDirectory, values["private-title"]))) {
      console.error("Nothing was sent.");
      return 1;
    }
    const places = placesFor(values.out, named, isAlone);
    const hidden = new Map<Subject, PrivateTitle>();
    const read = async (file: string): Promise<Subject> => {
      if (envelope) return envelope.document;
      if (values.manifest) return readObject(file) as Manifest;
      const shown = {
        title: title ?? wellFormed(basename(file)),
        content_hash: `sha256:${await hashForOthers(file)}`,
      };
      if (!values["private-title"]) return shown;
      const kept = keptTitle(places.receipts(file), shown);
      const words = kept ?? { title: shown.title, salt: randomBytes(SALT_BYTES).toString("base64") };
      const subject = { ...shown, title: hiddenTitle(words) };
      hidden.set(subject, words);
      return subject;
    };
    return interruptible((signal) => {
      const run = new AttestRun({ files, read, hidden, options, places, json: values.json, signal });
      const work = async (client: Client) => {
        if (isAlone) return run.attestOne(client);
        if (hasDirectory) run.say(`Attesting ${files.length} ${files.length === 1 ? "file" : "files"}.`);
        const fresh = files.filter((file) => places.receipts(file).length === 0);
        const warning = limitWords(fresh.length, (await client.health()).attestation_limit, values.wait);
        if (warning !== null) run.say(warning);
        for (const failure of failures) run.failed(failure);
        return run.attestAll(client);
      };
      // An interrupt ends waits alone: what was sent may be on the log, and its receipt is on its way.
      const sleep = (ms: number) => byTheClock(ms, signal);
      return withClient(values, work, { isEndless: values.wait, sleep, say: (sentence) => run.say(sentence) });
    });
  },
});

/**
 * Where the receipts go: beside the files, or where `--out` says.
 * @throws UsageError for one file as the place of several receipts
 */
function placesFor(out: string | undefined, { inside }: NamedFiles, isAlone: boolean): DocumentPlaces {
  if (out === undefined) return new DocumentFiles();
  const isDirectory = statSync(out, { throwIfNoEntry: false })?.isDirectory() ?? /[/\\]$/.test(out);
  if (isDirectory || !isAlone) {
    if (existsSync(out) && !isDirectory) throw new UsageError("--out is a directory if there are several FILEs");
    return new DocumentFiles((file) => join(out, inside.get(file) ?? basename(file)));
  }
  return new OutFile(out);
}

/**
 * With `--dsse`, what is attested of the envelope in the one FILE.
 * @throws UsageError; CairnlogError `invalid-input` for what is no envelope, or was not signed by the key
 */
async function readEnvelope(
  values: Values<typeof OPTIONS>,
  file: string | undefined,
): Promise<EnvelopeSubject | undefined> {
  const keyFile = values["envelope-key"];
  if (!values.dsse) {
    if (keyFile !== undefined) throw new UsageError("--envelope-key goes with --dsse");
    return undefined;
  }
  if (file === undefined) throw new UsageError("--dsse goes with one FILE");
  if (values.manifest) throw new UsageError("a FILE is a manifest or an envelope, not both");
  if (values.type !== undefined) throw new UsageError("the type of an envelope is the predicate of its statement");
  return envelopeSubject(readObject(file), readPublicKey(required(keyFile, "--envelope-key")), values.title);
}
