/**
 * Attestations: a manifest and a signature over it become an entry of the log. The signature is checked before the
 * command. The command checks everything that depends on the state of the log: whether the key is active, and whether
 * the attestation was submitted before.
 */
import { hash, randomUUID } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import { Pieces } from "../../base/turns.js";
import type { SubmitAttestation } from "../../contract/signing/attestations.js";
import type { Body } from "../../contract/types.js";
import { importPublicKey, type ServerKey, signersKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/pool.js";
import type { OperatorKey } from "../../crypto/signer/operator-key.js";
import type { Log } from "../../log/log.js";
import type { Committed } from "../../log/state/executor.js";
import {
  attestationPayloads,
  normaliseContentHash,
  type SignedMembers,
  signedMembers,
} from "../../verify/events/manifest.js";
import { eventIn, isWithheld } from "../../verify/events/withheld.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { registrationStatement } from "../../verify/keys/contract.js";
import type { PasswordService } from "../access/passwords.js";
import { completeAttestation, submissionTerms } from "../events/attestations.js";
import { defaultPseudonym, plainKey, readPseudonym } from "../events/keys.js";
import { checkPossession } from "../keys/keys.js";
import { decodeSignature, Faults, invalidInput, members } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import {
  type AttestationReceipt,
  attestationEvent,
  earlierReceipt,
  newReceipt,
  type RecordedAttestation,
  recordAttestation,
  type SignedAttestation,
} from "./commands.js";
import { Gathering } from "./gathering.js";
import { type CheckedManifest, readManifest, readTerms, resolvePredicate } from "./manifest.js";

const DEFAULT_TYPE = "authorship";

/** A body of `POST /attestations`; its manifest may be anything. */
type Submission = Omit<Body<typeof SubmitAttestation>, "manifest"> & { readonly manifest: unknown };

/** A key that the submitter has proven to hold, besides the signature. */
export interface Possession {
  readonly fingerprint: string;
  /**
   * Whether the proof was made for this submission alone. It must then be of the signer's key. A session may be of any
   * key.
   */
  readonly isForThis: boolean;
}

/** A submission, and the possession that was shown with it. */
interface Shown {
  readonly submission: Submission;
  /** Null if the submission came without a session and without an `auth` proof. */
  readonly possession: Possession | null;
}

/** A submission whose form is right. */
interface Form {
  readonly key: ServerKey;
  readonly checked: CheckedManifest;
  readonly event_type: string;
  readonly type: string;
  readonly statement: string | null;
  readonly pseudonym: string;
  readonly signature: Uint8Array;
  /** What the signature may be over. The first is the canonical manifest as it was submitted. */
  readonly payloads: readonly Uint8Array[];
}

/** A submission that may be recorded, if the log's entries allow it. */
interface Prepared {
  readonly signed: SignedAttestation;
  /** Whether the signature covers type and statement. */
  readonly names: SignedMembers;
}

/** Called with a receipt, or with why there is none. Neither may throw. */
type Receive = (receipt: AttestationReceipt) => void;
type Refuse = (error: unknown) => void;
type PasswordCheck = PasswordService["check"];

export class Attestations {
  readonly #log: Log;
  readonly #writes: Writes;
  readonly #verifier: SignatureVerifier;
  readonly #passwords: PasswordService;
  readonly #operator: OperatorKey;
  readonly #predicateBase: string;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    readonly writes: Writes;
    readonly verifier: SignatureVerifier;
    readonly passwords: PasswordService;
    readonly operator: OperatorKey;
    readonly predicateBase: string;
  }) {
    this.#log = parts.log;
    this.#writes = parts.writes;
    this.#verifier = parts.verifier;
    this.#passwords = parts.passwords;
    this.#operator = parts.operator;
    this.#predicateBase = parts.predicateBase;
  }

  /**
   * Records an attestation (`POST /attestations`). A new key is registered first, and so is one that names itself. If the same signer attests the same
   * manifest with the same type and statement again, the answer is the first receipt, even if the key has ended
   * meanwhile.
   *
   * Somebody who has read a manifest and its signature may submit them. The signature may not cover type, statement and
   * earlier attestations. Other values of these are accepted only from the holder of the key.
   * @param shown null if the submission came without a session and without an `auth` proof
   * @throws CairnlogError `invalid-key`, `private-key`, `invalid-input`, `not-i-json`; `forbidden` for a predicate of
   *   the operator's, for a proof of another key, and for a password that is missing or wrong; `rate-limited` after too
   *   many wrong ones; `invalid-signature`; `key-not-active`; `proof-required`; and as `Log.append` does
   */
  submit(
    submission: Submission,
    shown: Possession | null = null,
    client: Caller | null = null,
  ): Promise<AttestationReceipt> {
    const check: PasswordCheck = (...asked) => this.#passwords.check(...asked);
    // The only promise on the way.
    return new Promise((resolve, reject) => {
      const record = (prepared: Prepared) => this.#record(prepared, client, resolve, reject);
      this.#prepare({ submission, possession: shown }, check, record, reject);
    });
  }

  /**
   * Records many attestations (`POST /attestations/batch`), each for itself as `submit` does. All are checked first. Then
   * the commands of those that hold are given to the log together: their entries have the order of the list and share
   * batches. A later submission sees the earlier ones, so one that is there twice gets the receipt of the first.
   *
   * If we crash here, each entry is on disk or not; none depends on another.
   * @param read makes a submission of an item, and may refuse it. It is called for one item after the other
   * @returns for each item, in order, its receipt or why it was refused. Never rejects
   */
  async submitAll<Item>(
    items: readonly Item[],
    read: (item: Item) => Shown | Promise<Shown>,
    client: Caller | null = null,
  ): Promise<PromiseSettledResult<AttestationReceipt>[]> {
    const check = this.#oncePerPassword();
    const prepared = new Gathering<Prepared>(items.length);
    const pieces = new Pieces();
    for (const [i, item] of items.entries()) {
      const [done, fail] = prepared.place(i);
      const prepare = (shown: Shown) => this.#prepare(shown, check, done, fail);
      try {
        const shown = read(item);
        if (shown instanceof Promise) shown.then(prepare).catch(fail);
        else prepare(shown);
      } catch (error) {
        fail(error);
      }
      const rest = pieces.rest();
      if (rest) await rest;
    }
    const all = await prepared.all;
    const recorded = new Gathering<AttestationReceipt>(items.length);
    // Nothing is awaited between the commands, so no other command comes between them.
    for (const [i, one] of all.entries()) {
      const [done, fail] = recorded.place(i);
      if (one.status === "fulfilled") this.#record(one.value, client, done, fail);
      else fail(one.reason);
    }
    return recorded.all;
  }

  /**
   * The predicate of an attestation of this type by this key, which is its event type (docs/spec §7.5).
   * @throws CairnlogError `invalid-input`, `forbidden`
   */
  predicate(type: unknown, fingerprint: string): string {
    return resolvePredicate(type ?? DEFAULT_TYPE, this.#predicateBase, fingerprint === this.#operator.fingerprint);
  }

  /**
   * Checks everything that does not depend on the log's entries, and then calls `done`; or `fail` with what `submit`
   * throws. Exactly one of them is called, once, unless this throws.
   * @throws CairnlogError as `submit` does
   */
  #prepare(
    { submission, possession }: Shown,
    checkPassword: PasswordCheck,
    done: (prepared: Prepared) => void,
    fail: Refuse,
  ): void {
    const input = members(submission);
    const form = this.#check(input);
    const verified = (payload: number) => {
      const { fingerprint } = form.key;
      const isHeld = possession?.fingerprint === fingerprint;
      if (possession?.isForThis && !isHeld)
        throw new CairnlogError("forbidden", `The proof is of the key ${possession.fingerprint}, not of the signer's.`);
      const hasPassword = this.#passwords.isSet(fingerprint);
      const prepared = preparedOf(this.#log, input, form, payload, hasPassword || isHeld);
      // Checked after the signature: without one of the key nobody tries its password.
      const password = hasPassword ? checkPassword(fingerprint, input.password, isHeld) : undefined;
      if (input.possession_signature == null) {
        if (password) password.then(() => done(prepared)).catch(fail);
        else done(prepared);
        return;
      }
      const naming = this.#possession(form.key, input);
      Promise.all([naming, password])
        .then(([possession_signature]) => done({ ...prepared, signed: { ...prepared.signed, possession_signature } }))
        .catch(fail);
    };
    this.#verify(form, 0, verified, fail);
  }

  /** Checks the signature by which the key names itself. @throws CairnlogError `invalid-input`, `invalid-signature` */
  #possession(key: ServerKey, { pseudonym = null, possession_signature }: JsonObject): Promise<string> {
    const statement = registrationStatement(key.fingerprint, pseudonym as string | null, null);
    return checkPossession(this.#verifier, key, {
      message: () => Buffer.from(canonicalJson(statement)),
      signature: possession_signature,
      path: "/possession_signature",
      about: "the registration of the key under this pseudonym",
    });
  }

  /**
   * Checks each password of a key once. A hundred submissions with one password cost one slow hash, and if it is wrong, one
   * of the key's tries.
   */
  #oncePerPassword(): PasswordCheck {
    const checks = new Map<string, Promise<void>>();
    return (fingerprint, password, isHeld) => {
      // A password of another type than text is refused without a hash.
      if (typeof password !== "string") return this.#passwords.check(fingerprint, password, isHeld);
      const name = `${fingerprint} ${isHeld} ${password}`;
      const check = checks.get(name) ?? this.#passwords.check(fingerprint, password, isHeld);
      checks.set(name, check);
      return check;
    };
  }

  /** Checks the form of a submission. @throws CairnlogError as `submit` does */
  #check(input: Readonly<Record<string, unknown>>): Form {
    const key = signersKey(input.public_key_pem as string);
    const checked = readManifest(input.manifest, "/manifest");
    const { manifest } = checked;
    const faults = new Faults();
    const { type = DEFAULT_TYPE, statement } = readTerms(input, manifest.document, faults);
    const event_type = this.predicate(type, key.fingerprint);
    const pseudonym =
      input.pseudonym == null
        ? defaultPseudonym(key.fingerprint)
        : readPseudonym(input.pseudonym, "/pseudonym", faults);
    faults.check();
    const signature = decodeSignature(input.signature);
    if (!signature) throw invalidInput("/signature", "The signature must be strict base64, padded and without spaces.");
    return {
      key,
      checked,
      event_type,
      type: type as string,
      statement,
      pseudonym: pseudonym!,
      signature,
      // The two payloads differ only if there are earlier attestations, which is rare. Without them, Node's own encoder
      // is used: it costs a third of the portable one.
      payloads: manifest.attestations.length
        ? attestationPayloads(manifest, manifest.attestations.length).map(({ bytes }) => bytes)
        : [Buffer.from(canonicalJson(manifest))],
    };
  }

  /** Calls `verified` with the number of the first payload, from `from` on, over which the signature is one; or `fail`. */
  #verify(form: Form, from: number, verified: (payload: number) => void, fail: Refuse): void {
    const { key, payloads, signature } = form;
    this.#verifier.check(key, payloads[from]!, signature, (holds) => {
      try {
        if (holds) verified(from);
        else if (from + 1 < payloads.length) this.#verify(form, from + 1, verified, fail);
        else {
          // Throws if it is the key's fault.
          importPublicKey(key.pem);
          fail(notSigned());
        }
      } catch (error) {
        fail(error);
      }
    });
  }

  /** Calls `done` with the receipt when the entry is on disk, or else `fail`. */
  #record({ signed, names }: Prepared, client: Caller | null, done: Receive, fail: Refuse): void {
    const committed = ({ value, receipts }: Committed<RecordedAttestation>) => {
      try {
        const { pseudonym, earlier } = value;
        if (earlier === undefined) done(newReceipt(signed, pseudonym, receipts.at(-1)!, names));
        else this.#repeat({ signed, names }, client, pseudonym, earlier, done, fail);
      } catch (error) {
        fail(error);
      }
    };
    this.#writes.enqueue(recordAttestation, signed, client, signed.content.key.fingerprint, committed, fail);
  }

  /** @param earlier leaf index of the entry that was found under this submission's term */
  #repeat(
    { signed, names }: Prepared,
    client: Caller | null,
    pseudonym: string,
    earlier: number,
    done: Receive,
    fail: Refuse,
  ): void {
    // The command is answered only when everything that it read is on disk.
    const entry = this.#log.entryAt(earlier)!;
    if (isWithheld(entry)) {
      fail(
        new CairnlogError("gone", `This attestation is entry ${entry.id}, and withheld by entry ${entry.withheld_by}.`),
      );
      return;
    }
    const event = completeAttestation(eventIn(entry));
    const { content } = signed;
    const isSame =
      event?.signer_key_fingerprint === content.key.fingerprint &&
      normaliseContentHash(event.manifest_hash) === `sha256:${content.manifest_hash}` &&
      entry.event_type === signed.event_type &&
      (event.intent_statement ?? null) === content.intent_statement;
    if (isSame) done(earlierReceipt(event, pseudonym, entry, earlier, this.#log.treeHead(earlier + 1), names));
    // The command then appends, whatever it finds.
    else this.#record({ signed: { ...signed, is_another: true }, names }, client, done, fail);
  }
}

/**
 * A submission whose signature holds.
 * @param payload number of the payload that was signed
 * @param isHeld whether the submitter has shown that it holds the key
 */
function preparedOf(log: Log, input: JsonObject, form: Form, payload: number, isHeld: boolean): Prepared {
  const { key, checked, payloads, event_type, pseudonym } = form;
  const names = signedMembers(checked.manifest);
  const content = {
    key: plainKey(key),
    attestation_id: randomUUID(),
    attestation_type: form.type,
    document_hash: checked.contentHash,
    document_title: checked.title,
    intent_statement: form.statement,
    manifest_hash: hash("sha256", payloads[0]!, "hex"),
    signed_payload_hash: payload > 0 ? hash("sha256", payloads[payload]!, "hex") : null,
    signature: input.signature as string,
    tags: checked.tags,
  };
  // Neither its terms nor those of the submission depend on the time at which it is recorded.
  const event = { event_type, payload: attestationEvent(content, "") };
  const found = submissionTerms(event_type, event.payload);
  const signed = {
    content,
    event_type,
    pseudonym,
    terms: log.termsOf(event),
    submission_term: found.submission,
    payload_term: found.payload,
    signature_term: found.signature,
    // A signature that covers the whole submission makes every part of it the signer's.
    may_differ: isHeld || (names.attestation_type && names.intent_statement && payload === 0),
    is_another: false,
    ...(log.operators.retired.has(key.fingerprint) && { is_retired: true as const }),
  };
  return { signed, names };
}

const notSigned = (): CairnlogError =>
  new CairnlogError("invalid-signature", "The signature does not verify over the manifest with this public key.");
