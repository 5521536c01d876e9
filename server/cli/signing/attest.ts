/**
 * `cairnlog attest`: hashes files and signs on this machine, submits the attestations, verifies the receipts, and keeps
 * them beside the files. Neither a file nor the private key leaves this machine.
 */
import { basename } from "node:path";
import { CairnlogError } from "../../../engine/error.js";
import {
  type AttestationBundle,
  type Entry,
  type EnvelopeSubject,
  envelopeSubject,
  type Manifest,
  signedWords,
} from "../../../engine/verify/index.js";
import {
  type AttestationReceipt,
  type AttestOptions,
  type Client,
  ClientError,
  type Subject,
} from "../../client/index.js";
import { Beside, isDocument } from "../beside.js";
import { CONNECTION_OPTIONS, report, requireKey, withClient } from "../connection.js";
import { namedFiles } from "../files.js";
import { readPublicKey } from "../identity/public-key.js";
import { readSecret } from "../identity/secrets.js";
import { flag, text, type Values } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { readObject } from "../objects.js";
import { printable, printableJson } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import { required, UsageError } from "../usage.js";
import { hashFile } from "./file-hash.js";

const OPTIONS = {
  type: text("TYPE", "authorship (default), editorial_review, peer_review, publication, or an https: predicate"),
  title: text(
    "TITLE",
    "title of the document (default: the file's name; of an envelope, the name of its first subject)",
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
  ...CONNECTION_OPTIONS,
} as const;

export const attest = subcommand({
  forms: ["PATH... --key KEY.pem"],
  about: `Hashes each file, signs a manifest of it with KEY, submits manifest and signature, checks the receipt, and writes
FILE.attestation.json beside the file. The file itself is not sent. The receipt of another attestation (signer, type, statement, log,
or what was in the file) is never overwritten: the next one is FILE.attestation.2.json. cairnlog verify reads all of them.

A PATH is a file, or a directory: then each regular file in it and in the directories below is attested, in the order of
their paths, without symbolic links and what cairnlog keeps beside files. Several files are submitted together, up to 1000 at once. One that
cannot be read, or that the service refuses, is reported, and the others are attested. Files that were attested before get
their first receipt again, so the command can be repeated. A limit of the service that ends within a minute is waited for.`,
  options: OPTIONS,
  notes: "Exit codes: 0 every file is attested; 1 one is not; 2 the command was not understood.",
  examples: `cairnlog attest report.pdf --key me.pem
cairnlog attest papers/ --key me.pem
cairnlog attest build.intoto.json --dsse --envelope-key builder.pub.pem --key me.pem`,
  async run(paths, values) {
    if (values.manifest && values.title !== undefined) throw new UsageError("a manifest has its own title");
    if (!paths.length) throw new UsageError("name at least one FILE");
    const { files, failures, hasDirectory } = namedFiles(paths, isDocument);
    const isAlone = files.length === 1 && !hasDirectory;
    if (values.title !== undefined && !isAlone) throw new UsageError("--title goes with one FILE");
    const envelope = await readEnvelope(values, isAlone ? files[0] : undefined);
    requireKey(values);
    const { title, type = envelope?.type, pseudonym, intent, "password-file": passwordFile } = values;
    const password = passwordFile === undefined ? undefined : readSecret(passwordFile);
    const options = { type, pseudonym, intent, password };
    const beside = new Beside();
    const read = async (file: string): Promise<Subject> => {
      if (envelope) return envelope.document;
      if (values.manifest) return readObject(file) as Manifest;
      return { title: title ?? basename(file), content_hash: `sha256:${await hashFile(file)}` };
    };
    return withClient(values, async (client) => {
      if (isAlone) {
        const [file] = files as [string];
        const attested = client.attest(await read(file), options);
        const { receipt, bundle, notice } = await attested.catch((error: unknown) => {
          keepUnverified(error, client.server, beside, () => file);
          throw error;
        });
        keep(values, beside, file, receipt, bundle);
        if (notice !== undefined) console.error(printable(notice));
        return 0;
      }
      if (hasDirectory) console.error(`Attesting ${files.length} ${files.length === 1 ? "file" : "files"}.`);
      const warning = limitWords(files.length, (await client.health()).attestation_limit);
      if (warning !== null) console.error(warning);
      const many = new ManyFiles(values, beside, files, read);
      for (const failure of failures) many.failed(failure);
      return many.attest(client, options);
    });
  },
});

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

/** What the service's limit means for so many files, if it is below their number; null otherwise. */
export function limitWords(
  files: number,
  limit: { readonly requests: number; readonly seconds: number } | undefined,
): string | null {
  if (!limit || files <= limit.requests) return null;
  const { requests, seconds } = limit;
  const later = Math.ceil(files / requests) - 1;
  return `The service takes ${requests} attestations in ${duration(seconds)} from one address: at most ${requests} of the ${files} files are attested now. Attest the others in portions of ${requests}, one every ${duration(seconds)}: about ${duration(later * seconds)} more.`;
}

/** Seconds in the largest unit that fits: 5400 → "1.5 h". */
function duration(seconds: number): string {
  const [size, unit] = seconds >= 3600 ? [3600, "h"] : seconds >= 60 ? [60, "min"] : [1, "s"];
  return `${Number((seconds / size).toFixed(1))} ${unit}`;
}

/** Attests several files. One that fails stops no other. */
class ManyFiles {
  readonly #values: { readonly json: boolean };
  readonly #beside: Beside;
  readonly #files: readonly string[];
  readonly #read: (file: string) => Promise<Subject>;
  readonly #progress: ReturnType<typeof startProgress>;
  /** The files of the subjects that are on their way. */
  readonly #fileOf = new Map<Subject, string>();
  #attested = 0;
  #hasFailed = false;
  #notice: string | undefined;

  constructor(
    values: { readonly json: boolean },
    beside: Beside,
    files: readonly string[],
    read: (file: string) => Promise<Subject>,
  ) {
    this.#values = values;
    this.#beside = beside;
    this.#files = files;
    this.#read = read;
    this.#progress = startProgress("Attested:", files.length);
  }

  /** @returns the exit code. @throws ClientError if the rest cannot be sent */
  async attest(client: Client, options: AttestOptions): Promise<number> {
    try {
      for await (const { subject, error, receipt, bundle, notice } of client.attestAll(this.#subjects(), options)) {
        const file = this.#fileOf.get(subject)!;
        this.#fileOf.delete(subject);
        // The first one says what happened to the name; later ones may only see the result.
        this.#notice ??= notice;
        if (error) {
          this.#keepUnverified(error, client.server, () => file);
          this.failed(error, file);
        } else this.#keep(file, receipt, bundle);
      }
    } catch (error) {
      this.#keepUnverified(error, client.server, (subject) => this.#fileOf.get(subject)!);
      throw error;
    } finally {
      this.#progress.end();
      if (this.#notice !== undefined) console.error(printable(this.#notice));
      const left = this.#files.length - this.#attested;
      if (left) console.error(`${left} of ${this.#files.length} files are not attested.`);
    }
    return this.#hasFailed ? 1 : 0;
  }

  /** Reports a file or a directory, and goes on. @param file null for a directory, which the error names */
  failed(error: Error, file: string | null = null): void {
    this.#hasFailed = true;
    this.#progress.end();
    // An error of the file system names the file.
    const name = file === null || isSystemError(error) ? "" : `${file}: `;
    const detail = isSystemError(error) ? systemSentence(error, file ?? undefined) : error.message;
    const { code } = error as { readonly code?: string };
    if (this.#values.json && file !== null) console.log(printableJson({ file, error: { code, detail } }));
    else console.error(printable(`cairnlog: ${name}${detail}`));
  }

  /** The subjects of the files that can be read. They are read as they are needed: a batch, then the next one. */
  async *#subjects(): AsyncGenerator<Subject> {
    for (const file of this.#files) {
      let subject: Subject;
      try {
        subject = await this.#read(file);
      } catch (error) {
        if (!isOfFile(error)) throw error;
        this.failed(error, file);
        continue;
      }
      this.#fileOf.set(subject, file);
      yield subject;
    }
  }

  #keepUnverified(error: unknown, server: string, fileOf: (subject: Subject) => string): void {
    this.#progress.end();
    keepUnverified(error, server, this.#beside, fileOf);
  }

  #keep(file: string, receipt: AttestationReceipt, bundle: AttestationBundle): void {
    this.#progress.end();
    try {
      keep(this.#values, this.#beside, file, receipt, bundle);
      this.#attested++;
    } catch (error) {
      if (!isOfFile(error)) throw error;
      this.failed(error, file);
    }
    this.#progress.update(this.#attested);
  }
}

/** Whether an error is about one file: it cannot be read or written, or holds no manifest. */
const isOfFile = (error: unknown): error is Error => error instanceof CairnlogError || isSystemError(error);

/** Writes the bundle of a file and reports it. */
function keep(
  values: { readonly json: boolean },
  beside: Beside,
  file: string,
  { log_entry_id, duplicate, signed }: AttestationReceipt,
  bundle: AttestationBundle,
): void {
  const { entry_hash } = bundle.entry;
  const text = `${JSON.stringify(bundle, null, 2)}\n`;
  const path = beside.keep(file, "receipt", text, (kept) => parsed(kept)?.entry?.entry_hash === entry_hash);
  const isSigned = signed.attestation_type && signed.intent_statement;
  report(
    values,
    { file, bundle: path, log_entry_id, duplicate, signed },
    `${file}: entry ${log_entry_id}${duplicate ? " (recorded before)" : ""}, ${path}${isSigned ? "" : `. ${signedWords(signed)}`}`,
  );
}

/**
 * Keeps the answers that say that something was recorded, and that were not verified, beside the files, and says so: the
 * entry may be in the log, and this is all there is of it.
 */
function keepUnverified(error: unknown, server: string, beside: Beside, fileOf: (subject: Subject) => string): void {
  if (!(error instanceof ClientError)) return;
  for (const { subject, manifest, answer } of error.unverified ?? []) {
    const file = fileOf(subject);
    const text = `${JSON.stringify({ why: error.detail, server, manifest, answer }, null, 2)}\n`;
    const path = beside.keep(
      file,
      "unverified",
      text,
      (kept) => parsed(kept)?.answer?.entry_hash === answer.entry_hash,
    );
    const told = `The service says that ${file} is recorded as entry ${answer.log_entry_id}.`;
    console.error(printable(`${told} That answer is not verified; it is kept in ${path}.`));
  }
}

/** The content of a file that may be one of ours; null for another one. Nothing of it is believed. */
function parsed(
  text: string,
): { readonly entry?: Partial<Entry>; readonly answer?: Partial<AttestationReceipt> } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
