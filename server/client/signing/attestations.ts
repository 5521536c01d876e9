/**
 * Attesting: the signed bytes, one submission or many. A signature only states what it covers, so type and statement of an
 * attestation are signed with the document.
 */

import { KeyDetail } from "../../../engine/contract/identity/keys.js";
import * as wire from "../../../engine/contract/signing/attestations.js";
import { canonicalJson, type Manifest, signingPayload } from "../../../engine/verify/index.js";
import { registrationStatement } from "../../../engine/verify/keys/contract.js";
import { ClientError } from "../base/error.js";
import { problemError } from "../base/http.js";
import type { AttestationBatch, AttestationReceipt, KeyDetail as KnownKey } from "../base/types.js";
import { Area } from "../log/area.js";
import { type Answered, type Attested, Receipts, type Submitted } from "./receipts.js";

/** A document with its hash. The service gets nothing else of it. */
export type AttestedDocument = Manifest["document"];

export interface AttestOptions {
  /** authorship (default), editorial_review, peer_review, publication, or an `https:` predicate URL. */
  readonly type?: string | undefined;
  /** The key's name, if it has not named itself yet. */
  readonly pseudonym?: string | undefined;
  readonly intent?: string | undefined;
  /** Required if the key has a password. */
  readonly password?: string | undefined;
}

/** What became of one of many attestations. */
export type AttestOutcome<Subject> = { readonly subject: Subject } & (
  | (Attested & { readonly error?: never })
  | { readonly error: ClientError; readonly receipt?: never; readonly bundle?: never; readonly notice?: never }
);

/** A document, or a manifest with its attestations. */
export type Subject = AttestedDocument | Manifest;

export class AttestationsClient extends Area {
  readonly #receipts = new Receipts(this.http, this.watch, this.auth);
  /** Whether the key has named itself, as far as this client knows. */
  #isNamed = false;

  /** Signs and submits. @throws ClientError `log-misbehaved` for an invalid receipt */
  async attest(subject: Subject, options: AttestOptions): Promise<Attested> {
    const manifest = manifestToSign(subject, options);
    const naming = await this.#naming(options);
    const submitted = await this.#submission(manifest, options, naming);
    const size = await this.watch.sizeBefore();
    const answer = await this.#submit(submitted);
    const attested = await this.#receipts
      .verified(submitted, answer, size)
      .catch((error: unknown) => Promise.reject(unverified(error, [subject], [{ submitted, answer }])));
    return this.#noticed(attested, options, naming);
  }

  /**
   * Signs and submits many, up to 1000 in one request. Yields outcomes in the order of `subjects`, those of a request when all of
   * its receipts are verified.
   * @throws ClientError if nothing more can be sent, and `log-misbehaved` for an invalid receipt. What was yielded is recorded
   */
  async *attestAll<S extends Subject>(
    subjects: Iterable<S> | AsyncIterable<S>,
    options: AttestOptions,
  ): AsyncGenerator<AttestOutcome<S>, void, undefined> {
    let batch: S[] = [];
    let manifests: Manifest[] = [];
    for await (const subject of subjects) {
      // As it is now: the next one may be the same object with other members.
      manifests.push(manifestToSign(subject, options));
      if (batch.push(subject) < wire.MAX_SUBMISSIONS) continue;
      yield* this.#attestBatch(batch, manifests, options);
      batch = [];
      manifests = [];
    }
    if (batch.length) yield* this.#attestBatch(batch, manifests, options);
  }

  async *#attestBatch<S extends Subject>(
    subjects: readonly S[],
    manifests: readonly Manifest[],
    options: AttestOptions,
  ): AsyncGenerator<AttestOutcome<S>, void, undefined> {
    const submissions: Submitted[] = [];
    // Each of them may be the first that is recorded.
    const naming = await this.#naming(options);
    for (const manifest of manifests) submissions.push(await this.#submission(manifest, options, naming));
    let next = 0;
    for (let length = submissions.length; next < submissions.length; ) {
      const sent = submissions.slice(next, next + length);
      const size = await this.watch.sizeBefore();
      let answered: Answered[];
      try {
        answered = await this.#submitAll(sent);
      } catch (error) {
        length = fewer(error, sent.length);
        continue;
      }
      const outcomes = await this.#receipts
        .verifiedAll(answered, size)
        .catch((error: unknown) => Promise.reject(unverified(error, subjects.slice(next), answered)));
      for (const [i, outcome] of outcomes.entries()) {
        const subject = subjects[next++]!;
        yield outcome instanceof ClientError
          ? { subject, error: unverified(outcome, [subject], [answered[i]!]) }
          : { subject, ...this.#noticed(outcome, options, naming) };
      }
    }
  }

  /** Sends a batch in one request. @throws ClientError if it was refused as a whole */
  async #submitAll(sent: readonly Submitted[]): Promise<Answered[]> {
    let results: AttestationBatch["results"];
    try {
      ({ results } = await this.http.post(wire.AttestationBatch, "/attestations/batch", { submissions: sent }));
    } catch (error) {
      // Too large even alone. The others may still be sent.
      if (sent.length === 1 && isTooLarge(error)) return [{ submitted: sent[0]!, answer: error }];
      throw error;
    }
    if (results.length !== sent.length)
      throw new ClientError("malformed-answer", "The service did not answer each submission of the batch.");
    const answered: Answered[] = [];
    for (const [i, submitted] of sent.entries())
      answered.push({ submitted, answer: await this.#answer(submitted, results[i]!) });
    return answered;
  }

  async #answer(
    submitted: Submitted,
    result: AttestationBatch["results"][number],
  ): Promise<AttestationReceipt | ClientError> {
    if ("receipt" in result) return result.receipt;
    try {
      return await this.#proven(
        submitted,
        problemError(result.status, result.problem, { retryAfter: result.retry_after }),
      );
    } catch (refusal) {
      // The others are recorded, so their receipts must not be lost.
      if (refusal instanceof ClientError) return refusal;
      throw refusal;
    }
  }

  /** Submits, with a proof if the service requires one. */
  async #submit(submitted: Submitted): Promise<AttestationReceipt> {
    try {
      return await this.http.post(wire.AttestationReceipt, "/attestations", submitted);
    } catch (error) {
      return this.#proven(submitted, error);
    }
  }

  /**
   * Submits with a proof what was refused without one: the key has signed the same bytes before, for another type or
   * statement, or somebody has tried passwords with signatures that the log shows.
   * @throws `refusal` if a proof does not help
   */
  async #proven(submitted: Submitted, refusal: unknown): Promise<AttestationReceipt> {
    const { code } = refusal as Partial<ClientError>;
    if (code !== "proof-required" && !(code === "rate-limited" && submitted.password)) throw refusal;
    return this.auth.postProven(wire.AttestationReceipt, "/attestations", { ...submitted });
  }

  /**
   * What the log knows of the key before its first attestation, and the signature by which the key names itself. A key that
   * has attested before, and for which the user names no name, keeps the one that it has in the log: it may be its own.
   * @throws ClientError
   */
  async #naming({ pseudonym }: AttestOptions): Promise<Naming> {
    if (this.#isNamed) return {};
    const { fingerprint } = this.auth.key;
    const path = `/keys/${encodeURIComponent(fingerprint)}`;
    const known = await this.http.get(KeyDetail, path).catch(ifUnknown);
    this.#isNamed = known?.named === true;
    if (this.#isNamed) return {};
    if (known?.proven && pseudonym === undefined) return { known };
    const statement = registrationStatement(fingerprint, pseudonym ?? null, null);
    const possession_signature = await this.auth.signStatement(statement);
    return known ? { known, possession_signature } : { possession_signature };
  }

  /** Says what the user should know about the name of the key in the log. */
  #noticed(attested: Attested, { pseudonym }: AttestOptions, { known, possession_signature }: Naming): Attested {
    const { receipt } = attested;
    const asked = pseudonym?.normalize("NFC");
    if (possession_signature !== undefined && !receipt.duplicate) this.#isNamed = true;
    const isReplaced = known && possession_signature !== undefined && !receipt.duplicate;
    const notice = isReplaced
      ? `The log knew this key as ${quoted(known.pseudonym)}, which the key had not signed. It has now signed that its name is ${quoted(receipt.pseudonym)}.`
      : asked !== undefined && asked !== receipt.pseudonym
        ? `The log knows this key as ${quoted(receipt.pseudonym)}, not as ${quoted(asked)}: the key keeps the name that it had before.`
        : known
          ? `The log knows this key as ${quoted(receipt.pseudonym)}, which the key has not signed: anybody may have recorded that. Name the key to have it sign its name.`
          : undefined;
    return notice === undefined ? attested : { ...attested, notice };
  }

  async #submission(manifest: Manifest, options: AttestOptions, { possession_signature }: Naming): Promise<Submitted> {
    const { type = DEFAULT_TYPE, pseudonym, intent, password } = options;
    return {
      manifest,
      public_key_pem: this.auth.key.pem,
      signature: await this.auth.sign(signingPayload(manifest)),
      attestation_type: type,
      pseudonym,
      possession_signature,
      intent_statement: intent,
      password,
      // What is undefined is not sent.
    } as Submitted;
  }
}

const DEFAULT_TYPE = "authorship";

/** The manifest that is signed for a subject. */
export function manifestToSign(
  subject: Subject,
  { type = DEFAULT_TYPE, intent }: Pick<AttestOptions, "type" | "intent">,
): Manifest {
  // In the order in which it is signed: then the service finds its canonical form in the body, and need not spell it.
  return JSON.parse(canonicalJson(withMeaning(subject, type, intent ?? null))) as Manifest;
}

/** How the key names itself by an attestation; empty for a key that has done so. */
interface Naming {
  /** The key in the log, which has not named itself. Absent if it is not registered. */
  readonly known?: KnownKey;
  readonly possession_signature?: string;
}

function ifUnknown(error: unknown): undefined {
  if (error instanceof ClientError && error.status === 404) return undefined;
  throw error;
}

/** `error`, with the answers that say that something was recorded. */
function unverified<E>(error: E, subjects: readonly Subject[], answered: readonly Answered[]): E {
  if (error instanceof ClientError)
    error.unverified = answered.flatMap(({ submitted: { manifest }, answer }, i) =>
      answer instanceof ClientError ? [] : [{ subject: subjects[i]!, manifest, answer }],
    );
  return error;
}

const quoted = (name: string): string => `“${name}”`;

/** Whether a body is too large, or has too many members. */
const isTooLarge = (error: unknown): error is ClientError =>
  error instanceof ClientError && (error.status === 413 || (error.status === 422 && error.code === "invalid-input"));

/** How many to send after a batch of `sent` was refused as a whole. @throws `error` if fewer would be refused, too */
function fewer(error: unknown, sent: number): number {
  if (sent > 1 && isTooLarge(error)) return Math.ceil(sent / 2);
  const remaining = error instanceof ClientError && error.status === 429 ? (error.remaining ?? 0) : 0;
  if (remaining > 0 && remaining < sent) return remaining;
  throw error;
}

/** The manifest to sign. Attestations in a manifest already cover its document, which must then stay unchanged. */
function withMeaning(subject: Subject, type: string, statement: string | null): Manifest {
  const manifest = isManifest(subject) ? subject : { document: subject, attestations: [] };
  if (manifest.attestations.length) return manifest;
  return { ...manifest, document: { ...manifest.document, attestation_type: type, intent_statement: statement } };
}

function isManifest(subject: Subject): subject is Manifest {
  return Array.isArray(subject.attestations) && typeof subject.document === "object";
}
