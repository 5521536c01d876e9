/**
 * Attestations: a manifest and a signature over it become an entry of the log. The signature is checked before the
 * command. The command checks everything that depends on the state of the log: whether the key is active, and whether
 * the attestation was submitted before.
 */
import { hash, randomUUID } from "node:crypto";
import type { OperatorKey } from "../../crypto/keys/operator-key.js";
import { importPublicKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/verifier.js";
import { CairnlogError } from "../../error.js";
import type { Log } from "../../log/log.js";
import type { Receipt } from "../../log/write/executor.js";
import { Pieces } from "../../turns.js";
import type { AttestationEvent } from "../../verify/bundle/format.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import {
  type Attestation,
  attestationPayloads,
  normaliseContentHash,
  type SignedMembers,
  signedMembers,
} from "../../verify/manifest.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import type { PasswordService } from "../access/passwords.js";
import { decodeSignature, Faults, invalidInput, members } from "../input.js";
import { plainKey } from "../keys/commands.js";
import { defaultPseudonym, readPseudonym } from "../keys/pseudonym.js";
import { attestationEvent, recordAttestation, type SignedAttestation } from "./commands.js";
import { completeAttestation, recordedAttestation } from "./events.js";
import { type CheckedManifest, readManifest, readTerms } from "./manifest.js";
import { resolvePredicate } from "./predicates.js";

const DEFAULT_TYPE = "authorship";

/** The body of `POST /attestations`. */
export interface Submission {
  readonly manifest: unknown;
  readonly public_key_pem: string;
  /** Base64 signature over the canonical manifest as submitted, or with `attestations: []`. */
  readonly signature: string;
  /**
   * One of the four short types or a predicate URL. If absent, the type that the manifest's document names, else
   * `authorship`.
   */
  readonly attestation_type?: string | null;
  /** Used if the key is not registered yet. */
  readonly pseudonym?: string | null;
  /** If absent, the statement that the manifest's document names, if it does. */
  readonly intent_statement?: string | null;
  /** Required if the key has a password. */
  readonly password?: string | null;
}

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
export interface Shown {
  readonly submission: Submission;
  /** Null if the submission came without a session and without an `auth` proof. */
  readonly possession: Possession | null;
}

export interface AttestationReceipt {
  readonly attestation: Attestation;
  readonly fingerprint: string;
  readonly pseudonym: string;
  readonly log_entry_id: number;
  readonly leaf_index: number;
  readonly entry_hash: string;
  /** Bare hex. */
  readonly manifest_hash: string;
  /** The tree head of the size that ends with this entry. Null for an entry of imported history, which has no head. */
  readonly sth: TreeHead | null;
  /** Whether this is the receipt of an earlier submission. */
  readonly duplicate: boolean;
  /**
   * Whether the signature covers type and statement. It does if the manifest's document names them; otherwise only the
   * log states them.
   */
  readonly signed: SignedMembers;
}

/** A submission that may be recorded, if the log's entries allow it. */
interface Prepared {
  readonly signed: SignedAttestation;
  /** Whether the signature covers type and statement. */
  readonly names: SignedMembers;
}

type PasswordCheck = (fingerprint: string, password: unknown) => Promise<void>;

export class Attestations {
  readonly #log: Log;
  readonly #verifier: SignatureVerifier;
  readonly #passwords: PasswordService;
  readonly #operator: OperatorKey;
  readonly #predicateBase: string;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    readonly verifier: SignatureVerifier;
    readonly passwords: PasswordService;
    readonly operator: OperatorKey;
    readonly predicateBase: string;
  }) {
    this.#log = parts.log;
    this.#verifier = parts.verifier;
    this.#passwords = parts.passwords;
    this.#operator = parts.operator;
    this.#predicateBase = parts.predicateBase;
  }

  /**
   * Records an attestation (`POST /attestations`). A new key is registered first. If the same signer attests the same
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
  async submit(submission: Submission, shown: Possession | null = null): Promise<AttestationReceipt> {
    const check = (fingerprint: string, password: unknown) => this.#passwords.check(fingerprint, password);
    return this.#record(await this.#prepare({ submission, possession: shown }, check));
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
    read: (item: Item) => Promise<Shown>,
  ): Promise<PromiseSettledResult<AttestationReceipt>[]> {
    const check = this.#oncePerPassword();
    const prepared: Promise<PromiseSettledResult<Prepared>>[] = [];
    const pieces = new Pieces();
    for (const item of items) {
      prepared.push(settled(read(item).then((shown) => this.#prepare(shown, check))));
      await pieces.rest();
    }
    const all = await Promise.all(prepared);
    // Nothing is awaited between the commands, so no other command comes between them.
    return Promise.all(all.map((one) => (one.status === "fulfilled" ? settled(this.#record(one.value)) : one)));
  }

  /**
   * The predicate of an attestation of this type by this key, which is its event type (`spec.md`, predicate ownership).
   * @throws CairnlogError `invalid-input`, `forbidden`
   */
  predicate(type: unknown, fingerprint: string): string {
    return resolvePredicate(type ?? DEFAULT_TYPE, this.#predicateBase, fingerprint === this.#operator.fingerprint);
  }

  /** Checks everything that does not depend on the log's entries. @throws CairnlogError as `submit` does */
  async #prepare({ submission, possession }: Shown, checkPassword: PasswordCheck): Promise<Prepared> {
    const input = members(submission);
    const { signed, names } = await this.#check(input);
    const { fingerprint } = signed.key;
    const isHeld = possession?.fingerprint === fingerprint;
    if (possession?.isForThis && !isHeld)
      throw new CairnlogError("forbidden", `The proof is of the key ${possession.fingerprint}, not of the signer's.`);
    const hasPassword = this.#passwords.isSet(fingerprint);
    // Checked after the signature, so that nobody without a signature of the key can use up its holder's tries.
    await checkPassword(fingerprint, input.password);
    return { signed: { ...signed, may_differ: signed.may_differ || hasPassword || isHeld }, names };
  }

  /**
   * Checks each password of a key once. A hundred submissions with one password cost one slow hash, and if it is wrong, one
   * of the key's tries.
   */
  #oncePerPassword(): PasswordCheck {
    const checks = new Map<string, Promise<void>>();
    return (fingerprint, password) => {
      // A password of another type than text is refused without a hash.
      if (typeof password !== "string") return this.#passwords.check(fingerprint, password);
      const name = `${fingerprint} ${password}`;
      const check = checks.get(name) ?? this.#passwords.check(fingerprint, password);
      checks.set(name, check);
      return check;
    };
  }

  /** @returns also whether the signature covers type and statement */
  async #check(input: Readonly<Record<string, unknown>>): Promise<Prepared> {
    const key = importPublicKey(input.public_key_pem as string);
    const checked = readManifest(input.manifest, "/manifest");
    const faults = new Faults();
    const { type = DEFAULT_TYPE, statement } = readTerms(input, checked.manifest.document, faults);
    const event_type = this.predicate(type, key.fingerprint);
    const pseudonym =
      input.pseudonym == null
        ? defaultPseudonym(key.fingerprint)
        : readPseudonym(input.pseudonym, "/pseudonym", faults);
    faults.check();
    const signature = decodeSignature(input.signature);
    if (!signature) throw invalidInput("/signature", "The signature must be strict base64, padded and without spaces.");
    const { manifest_hash, signed_payload_hash } = await this.#verify(key, checked, signature);
    const names = signedMembers(checked.manifest);
    const signed = {
      key: plainKey(key),
      pseudonym: pseudonym!,
      event_type,
      attestation_id: randomUUID(),
      attestation_type: type as string,
      document_hash: checked.contentHash,
      document_title: checked.title,
      intent_statement: statement,
      manifest_hash,
      signed_payload_hash,
      signature: input.signature as string,
      tags: checked.tags,
      // The signature covers the whole submission, so every part of it is the signer's.
      may_differ: names.attestation_type && names.intent_statement && signed_payload_hash === null,
      is_another: false,
    };
    return { signed, names };
  }

  /**
   * @returns the hash of the manifest, and the hash of the signed bytes if these are not the manifest; both bare hex
   * @throws CairnlogError `invalid-signature`, `not-i-json`
   */
  async #verify(
    key: ServerKey,
    { manifest }: CheckedManifest,
    signature: Uint8Array,
  ): Promise<Pick<SignedAttestation, "manifest_hash" | "signed_payload_hash">> {
    // The two payloads differ only if there are earlier attestations, which is rare. Without them, Node's own encoder
    // is used: it costs a third of the portable one.
    const payloads = manifest.attestations.length
      ? attestationPayloads(manifest, manifest.attestations.length)
      : [{ bytes: Buffer.from(canonicalJson(manifest)) }];
    // The first payload is the canonical manifest as it was submitted.
    for (const [i, { bytes }] of payloads.entries())
      if (await this.#verifier.verify(key, bytes, signature))
        return {
          manifest_hash: hash("sha256", payloads[0]!.bytes, "hex"),
          signed_payload_hash: i > 0 ? hash("sha256", bytes, "hex") : null,
        };
    throw new CairnlogError(
      "invalid-signature",
      "The signature does not verify over the manifest with this public key.",
    );
  }

  async #record({ signed, names }: Prepared): Promise<AttestationReceipt> {
    return (await this.#try(signed, names)) ?? (await this.#try({ ...signed, is_another: true }, names))!;
  }

  /** @returns undefined if the entry that was found under this submission's term belongs to another submission */
  async #try(signed: SignedAttestation, names: SignedMembers): Promise<AttestationReceipt | undefined> {
    const { value, receipts } = await this.#log.execute(recordAttestation, signed);
    const { pseudonym, earlier } = value;
    if (earlier === undefined) {
      const receipt = receipts.at(-1)!;
      const event = attestationEvent(signed, receipt.timestamp);
      return answer(event, pseudonym, receipt, { duplicate: false, signed: names });
    }
    // The command is answered only when everything that it read is on disk.
    const entry = this.#log.entryAt(earlier)!;
    const event = completeAttestation(entry);
    const isSame =
      event?.signer_key_fingerprint === signed.key.fingerprint &&
      normaliseContentHash(event.manifest_hash) === `sha256:${signed.manifest_hash}` &&
      entry.event_type === signed.event_type &&
      (event.intent_statement ?? null) === signed.intent_statement;
    if (!isSame) return undefined;
    const place = { log_entry_id: entry.id, leaf_index: earlier, entry_hash: entry.entry_hash };
    const receipt = { ...place, sth: this.#log.treeHead(earlier + 1) };
    return answer(event, pseudonym, receipt, { duplicate: true, signed: names });
  }
}

function answer(
  event: AttestationEvent,
  pseudonym: string,
  receipt: Pick<Receipt, "log_entry_id" | "leaf_index" | "entry_hash"> & { readonly sth: TreeHead | null },
  about: Pick<AttestationReceipt, "duplicate" | "signed">,
): AttestationReceipt {
  const { log_entry_id, leaf_index, entry_hash, sth } = receipt;
  return {
    attestation: recordedAttestation(event),
    fingerprint: event.signer_key_fingerprint,
    pseudonym,
    log_entry_id,
    leaf_index,
    entry_hash,
    manifest_hash: normaliseContentHash(event.manifest_hash)!.slice("sha256:".length),
    sth,
    ...about,
  };
}

/** What becomes of `work`, which is handled from now on: a rejection ends nothing while others are awaited. */
const settled = <T>(work: Promise<T>): Promise<PromiseSettledResult<T>> =>
  work.then(
    (value) => ({ status: "fulfilled", value }),
    (reason: unknown) => ({ status: "rejected", reason }),
  );
