/** Attesting files: each gets its receipt a place before anything is sent. One that fails stops no other. */
import { CairnlogError } from "../../../engine/base/error.js";
import type { PrivateTitle } from "../../../engine/verify/events/hashed.js";
import { type AttestationBundle, signedMembers, signedWords } from "../../../engine/verify/index.js";
import { type AttestOptions, type Client, ClientError, type Subject } from "../../client/index.js";
import { printAnswer } from "../connection/connection.js";
import type { DocumentPlaces, EmptyFile } from "../files/document-files.js";
import { printableJson, printableLine } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import { findReceipt, parsed } from "./kept-receipt.js";

const PLACE_HINT = "--out FILE or --out DIR puts receipts elsewhere.";

/** What is to be attested, and where what comes back is kept. */
interface Work {
  readonly files: readonly string[];
  readonly read: (file: string) => Promise<Subject>;
  /** The titles that are not sent, of the subjects that `read` gave. */
  readonly hidden: ReadonlyMap<Subject, PrivateTitle>;
  readonly options: AttestOptions;
  readonly places: DocumentPlaces;
  readonly json: boolean;
  /** Ends the work between two requests. */
  readonly signal: AbortSignal;
}

export class AttestRun {
  readonly #work: Work;
  readonly #hashing: ReturnType<typeof startProgress>;
  readonly #attesting: ReturnType<typeof startProgress>;
  /** The files of the subjects that are on their way, and the places of their receipts. */
  readonly #sent = new Map<Subject, { readonly file: string; readonly place: EmptyFile }>();
  #isSending = false;
  #attested = 0;
  #unwritten = 0;
  #hasFailed = false;
  #notice: string | undefined;

  constructor(work: Work) {
    this.#work = work;
    const { length } = work.files;
    this.#hashing = startProgress("Hashed:", length);
    this.#attesting = startProgress("Attested:", length);
    work.signal.addEventListener("abort", () => {
      if (this.#isSending)
        this.say(
          "Interrupted: ending when no answer is due any more, so that no receipt is lost. A second interrupt ends at once.",
        );
    });
  }

  /** Says something on stderr, where a bar may be. */
  say(sentence: string): void {
    this.#hashing.end();
    this.#attesting.end();
    console.error(printableLine(sentence));
  }

  /** Attests the one file. @returns the exit code. @throws what stops it */
  async attestOne(client: Client): Promise<number> {
    const [file] = this.#work.files as [string];
    try {
      const subject = await this.#prepared(client, file);
      if (!subject) return 0;
      this.#isSending = true;
      const { bundle, receipt, notice } = await client.attest(subject, this.#work.options);
      this.#notice = notice;
      this.#keep(subject, bundle, receipt.duplicate);
      return this.#hasFailed ? 1 : 0;
    } catch (error) {
      throw this.#ending(error, client.server);
    } finally {
      this.#end();
    }
  }

  /** Attests all files. @returns the exit code. @throws ClientError if the rest cannot be sent */
  async attestAll(client: Client): Promise<number> {
    const { files, signal, options } = this.#work;
    this.#hashing.update(0, true);
    try {
      for await (const { subject, error, receipt, bundle, notice } of client.attestAll(
        this.#subjects(client),
        options,
      )) {
        // The first one says what happened to the name; later ones may only see the result.
        this.#notice ??= notice;
        if (!error) {
          this.#keep(subject, bundle, receipt.duplicate);
          continue;
        }
        const { file, place } = this.#taken(subject);
        this.#keepUnverified(error, client.server, file);
        place.release();
        this.failed(error, file);
      }
    } catch (error) {
      throw this.#ending(error, client.server);
    } finally {
      this.#end();
      const left = files.length - this.#attested - this.#unwritten;
      if (left && signal.aborted)
        this.say(
          `Recorded, with their receipts: ${this.#attested} of ${files.length} files. Run the command again for the others.`,
        );
      else if (left) this.say(`${left} of ${files.length} files are not attested.`);
      if (this.#unwritten)
        this.say(
          `${this.#unwritten} of ${files.length} files are recorded without a receipt here. Run the command again to get it.`,
        );
    }
    return this.#hasFailed ? 1 : 0;
  }

  /** Reports a file or a directory, and goes on. @param file null for a directory, which the error names */
  failed(error: Error, file: string | null = null): void {
    this.#hasFailed = true;
    // An error of the file system names the file.
    const name = file === null || isSystemError(error) || error.message.includes(file) ? "" : `${file}: `;
    const detail = isSystemError(error) ? systemSentence(error, file ?? undefined) : error.message;
    const { code } = error as { readonly code?: string };
    if (this.#work.json && file !== null) {
      this.#hashing.end();
      this.#attesting.end();
      console.log(printableJson({ file, error: { code, detail } }));
    } else this.say(`cairnlog: ${name}${detail}`);
  }

  /** The subjects of the files that have no receipt yet. They are read as they are needed: a batch, then the next one. */
  async *#subjects(client: Client): AsyncGenerator<Subject> {
    for (const [i, file] of this.#work.files.entries()) {
      try {
        const subject = await this.#prepared(client, file);
        this.#hashing.update(i + 1);
        if (!subject) continue;
        this.#isSending = true;
        yield subject;
        this.#isSending = false;
      } catch (error) {
        if (!isOfFile(error)) throw error;
        this.failed(error, file);
      }
    }
    this.#isSending = true;
  }

  /** What is to be attested of a file, when its receipt has a place. Null if it has its receipt already. */
  async #prepared(client: Client, file: string): Promise<Subject | null> {
    const { read, signal, places, options } = this.#work;
    signal.throwIfAborted();
    const subject = await read(file);
    signal.throwIfAborted();
    try {
      const found = await findReceipt(client, places.receipts(file), subject, options);
      if (found) {
        this.#report(file, found.path, found.bundle, true);
        return null;
      }
      this.#sent.set(subject, { file, place: places.open(file, "receipt") });
      return subject;
    } catch (error) {
      if (!isSystemError(error)) throw error;
      const detail = `No receipt of ${file} could be kept, so nothing of it was sent: ${systemSentence(error)} ${PLACE_HINT}`;
      throw new CairnlogError("storage-failed", detail, { cause: error });
    }
  }

  #taken(subject: Subject): { readonly file: string; readonly place: EmptyFile } {
    const sent = this.#sent.get(subject)!;
    this.#sent.delete(subject);
    return sent;
  }

  /** Writes the receipt of a file and reports it. */
  #keep(subject: Subject, bundle: AttestationBundle, isDuplicate: boolean): void {
    const { file, place } = this.#taken(subject);
    const { id, entry_hash } = bundle.entry;
    const private_title = this.#work.hidden.get(subject);
    let path: string;
    try {
      const text = `${JSON.stringify({ ...bundle, private_title }, null, 2)}\n`;
      path = place.keep(text, (kept) => parsed(kept)?.entry?.entry_hash === entry_hash);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      this.#unwritten++;
      // Nothing else has the salt, without which nobody can show what the title is.
      const kept = private_title ? ` Keep this, its private_title: ${JSON.stringify(private_title)}` : "";
      const detail = `${file} is recorded as entry ${id}, but its receipt is not written: ${systemSentence(error)} ${PLACE_HINT}${kept}`;
      this.failed(new CairnlogError("storage-failed", detail, { cause: error }), file);
      return;
    }
    this.#report(file, path, bundle, isDuplicate);
  }

  #report(file: string, path: string, { entry, attestation, manifest }: AttestationBundle, duplicate: boolean): void {
    this.#attested++;
    this.#hashing.end();
    this.#attesting.end();
    const signed = signedMembers(manifest);
    const words = signed.attestation_type && signed.intent_statement ? "" : `. ${signedWords(signed)}`;
    printAnswer(
      this.#work,
      { file, bundle: path, log_entry_id: entry.id, attestation_id: attestation.id, duplicate, signed },
      printableLine(
        `${file}: entry ${entry.id}${duplicate ? " (recorded before)" : ""}, ${path}, attestation ${attestation.id}${words}`,
      ),
    );
    this.#attesting.update(this.#attested);
  }

  /**
   * Keeps the answers that say that something was recorded, and that were not verified, and says so: the entry may be in the
   * log, and this is all there is of it. One that no file takes is shown.
   * @param file that of the answer, if there is only one
   */
  #keepUnverified(error: unknown, server: string, file?: string): void {
    if (!(error instanceof ClientError)) return;
    for (const { subject, manifest, answer } of error.unverified ?? []) {
      const document = file ?? this.#sent.get(subject)!.file;
      const private_title = this.#work.hidden.get(subject);
      const kept = { why: error.detail, server, manifest, private_title, answer };
      const isSame = (text: string) => parsed(text)?.answer?.entry_hash === answer.entry_hash;
      const said = `The service says that ${document} is recorded as entry ${answer.log_entry_id}. That answer is not verified`;
      try {
        const place = this.#work.places.open(document, "unverified");
        this.say(`${said}; it is kept in ${place.keep(`${JSON.stringify(kept, null, 2)}\n`, isSame)}.`);
      } catch (cause) {
        if (!isSystemError(cause)) throw cause;
        this.say(`${said}, and not kept: ${systemSentence(cause)} Keep it yourself: ${printableJson(kept)}`);
      }
    }
  }

  /** What the command ends with, after an error that ends it. */
  #ending(error: unknown, server: string): unknown {
    this.#keepUnverified(error, server);
    const { signal } = this.#work;
    // The wait for a limit was interrupted.
    return signal.aborted && error instanceof ClientError && error.code === "no-answer" ? signal.reason : error;
  }

  #end(): void {
    this.#work.places.release();
    this.#hashing.end();
    this.#attesting.end();
    if (this.#notice !== undefined) this.say(this.#notice);
  }
}

/** Whether an error is about one file: it cannot be read, has no place for its receipt, or holds no manifest. */
const isOfFile = (error: unknown): error is Error =>
  (error instanceof CairnlogError && error.code !== "closed" && !(error instanceof ClientError)) ||
  isSystemError(error);
