/**
 * Keys: registration, and all views of keys. A key's fingerprint is its identity. The operator key is a key like any
 * other, and exists from the start of the log.
 */
import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/identity/keys.js";
import type { Value } from "../../contract/types.js";
import { importPublicKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/pool.js";
import type { OperatorKey } from "../../crypto/signer/operator-key.js";
import type { Log } from "../../log/log.js";
import { type Clock, formatTimestamp } from "../../log/state/clock.js";
import type { KeyRow } from "../../store/schema/rows.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { isKeyAlgorithm, KEY_ALGORITHMS, registrationStatement } from "../../verify/keys/contract.js";
import { requestedTime } from "../../verify/tree/entry.js";
import { canonicalFingerprint, plainKey, readPseudonym, statusAt, unknownKey } from "../events/keys.js";
import { decodeSignature, Faults, invalidInput, members } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import { isRegistered, registerKey } from "./commands.js";
import { listKeys, type PageRequest, type RowPage, searchKeys } from "./directory.js";

// Signatures in a request that prove possession of the key that the request names.

/** A signature that a request carries. */
interface ShownPossession {
  /** Returns the bytes to sign. Called only if the signature has the right form. */
  readonly message: () => Uint8Array;
  /** Base64. An attacker may send anything. */
  readonly signature: unknown;
  /** JSON Pointer of the signature in the request. */
  readonly path: string;
  /** Completes the sentence "The signature is not the key's over …". */
  readonly about: string;
}

/**
 * Checks a signature of possession.
 * @returns the signature as it was sent
 * @throws CairnlogError `invalid-input` when it is not strict base64; `invalid-signature` when it does not verify
 */
export async function checkPossession(
  verifier: Pick<SignatureVerifier, "verify">,
  key: ServerKey,
  { message, signature, path, about }: ShownPossession,
): Promise<string> {
  const decoded = decodeSignature(signature);
  if (!decoded) throw invalidInput(path, "The signature must be strict base64, padded and without spaces.");
  if (!(await verifier.verify(key, message(), decoded)))
    throw new CairnlogError("invalid-signature", `The signature is not the key's over ${about}.`);
  return signature as string;
}

type KeySummary = Value<typeof contract.KeySummary>;

type KeyDetail = Value<typeof contract.KeyDetail>;

/** A key with all members that its own row tells. */
export interface KeyRecord extends Omit<KeyDetail, "successor_confirmed"> {
  /** When it was succeeded or revoked; null if it was neither. */
  readonly ended_at: string | null;
}

type KeyStatusView = Value<typeof contract.KeyStatusView>;

type Registration = Value<typeof contract.RegisterKey>["payload"];

type RegistrationReceipt = Value<typeof contract.KeyRegistered>;

type KeyPage = Value<typeof contract.KeyPage>;

/** The pseudonym of the operator key as long as it is not registered. */
export const OPERATOR_PSEUDONYM = "operator";

interface Parts {
  readonly log: Log;
  readonly writes: Writes;
  readonly verifier: Pick<SignatureVerifier, "verify">;
  readonly operator: OperatorKey;
  readonly clock: Clock;
}

export class Keys {
  readonly #parts: Parts;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Registers a key (`POST /keys/register`) and resolves when its entry is on disk. If the key has signed this, it
   * replaces what strangers recorded for it, unless the key has named itself already.
   * @param registrar fingerprint of the key whose session has come with the request. An anchor registers keys of others where
   *   these may not write yet
   * @throws CairnlogError `invalid-key`, `private-key`; `invalid-input` for a pseudonym of the wrong form, an unknown
   *   algorithm, or an expiration that is no timestamp or has passed; `forbidden` for an expiration of the operator
   *   key; `invalid-signature`; `already-exists`; `not-a-writer`; and as `Log.append` does
   */
  async register(
    registration: Registration,
    client: Caller | null = null,
    registrar: string | null = null,
  ): Promise<RegistrationReceipt> {
    const input = members(registration);
    const key = importPublicKey(input.public_key as string);
    const faults = new Faults();
    const pseudonym = readPseudonym(input.pseudonym, "/pseudonym", faults);
    const expiresAt = readExpiration(input.expiration_date, faults);
    checkAlgorithm(input.key_algorithm, "/key_algorithm", key, faults);
    if (this.#parts.log.operators.retired.has(key.fingerprint)) throw isRegistered(key);
    // Anybody may register any public key. That must not be a way to end the operator key.
    if (key.fingerprint === this.#parts.operator.fingerprint && expiresAt !== null)
      throw new CairnlogError("forbidden", "The operator key does not expire.");

    const signed = {
      // The values as they were sent: the holder has signed its own spelling, which may differ from the stored one.
      message: () => registrationMessage(key.fingerprint, input.pseudonym as string, input.expiration_date),
      signature: input.possession_signature,
      path: "/possession_signature",
      about: "this registration",
    };
    // Without a signature nothing is awaited, so that requests are queued in the order in which they came.
    const possession_signature =
      signed.signature == null ? null : await checkPossession(this.#parts.verifier, key, signed);
    const created = { key: plainKey(key), pseudonym: pseudonym!, expiration_date: expiresAt, possession_signature };
    const signer = possession_signature === null ? null : key.fingerprint;
    const writer = this.#parts.writes.answering(registrar, signer);
    const { receipts } = await this.#parts.writes.execute(registerKey, created, client, signer, writer);
    const { log_entry_id, leaf_index, entry_hash } = receipts[0]!;
    const { fingerprint, algorithm } = key;
    return { fingerprint, pseudonym: created.pseudonym, algorithm, log_entry_id, leaf_index, entry_hash };
  }

  /**
   * The key with this fingerprint, bare or with `sha256:`, in either case of hex; undefined when there is none.
   * @param time moment of the returned status, in canonical form; now, if absent
   */
  lookup(fingerprint: string, time: string = formatTimestamp(this.#parts.clock())): KeyRecord | undefined {
    const canonical = canonicalFingerprint(fingerprint);
    if (canonical === undefined) return undefined;
    const row = this.#parts.log.row("keys", canonical);
    return row ? this.#recordOf(row, time) : this.#operatorRecord(canonical);
  }

  /** The key with this fingerprint, in any form that `lookup` takes. @throws CairnlogError `not-found` */
  find(fingerprint: string): KeyRecord {
    const record = this.lookup(fingerprint);
    if (!record) throw unknownKey();
    return record;
  }

  /** `GET /keys/{fingerprint}`. @throws CairnlogError `not-found` */
  detail(fingerprint: string): KeyDetail {
    const { ended_at: _, ...record } = this.find(fingerprint);
    return { ...record, successor_confirmed: this.#isConfirmed(record) };
  }

  /** `GET /keys/{fingerprint}/status`. @throws CairnlogError `not-found` */
  status(fingerprint: string): KeyStatusView {
    const record = this.find(fingerprint);
    const { fingerprint: found, status, expires_at, named, successor_fingerprint } = record;
    const successor_confirmed = this.#isConfirmed(record);
    return { fingerprint: found, status, expires_at, named, successor_fingerprint, successor_confirmed };
  }

  /** Whether the key's successor has signed the succession, too; null if it has none. */
  #isConfirmed({ fingerprint, successor_fingerprint: successor }: SuccessionLink): boolean | null {
    return successor === null ? null : this.confirms(this.lookup(successor), fingerprint);
  }

  /** Whether `successor` has signed that it succeeds the key `predecessor`: a succession, or a rotation of the operator key. */
  confirms(successor: KeyRecord | undefined, predecessor: string): boolean {
    if (!successor) return false;
    if (successor.predecessor_fingerprint === predecessor) return successor.predecessor_confirmed === true;
    return this.#parts.log.operators.named(successor.fingerprint)?.rotation?.old_fingerprint === predecessor;
  }

  /** Every registered key, in order of registration (`GET /keys`). @throws CairnlogError `invalid-input` */
  list(paging: PageRequest = {}): KeyPage {
    return this.#page(listKeys(this.#parts.log, paging));
  }

  /**
   * The keys whose pseudonym contains `pseudonym`, ignoring case, in order of registration (`GET /keys/search`).
   * @throws CairnlogError `invalid-input`
   */
  async search(pseudonym: string, paging: PageRequest = {}): Promise<KeyPage> {
    return this.#page(await searchKeys(this.#parts.log, pseudonym, paging));
  }

  #page({ rows, ...page }: RowPage): KeyPage {
    const now = formatTimestamp(this.#parts.clock());
    return { keys: rows.map((row) => summarise(this.#recordOf(row, now))), ...page };
  }

  /** A rotation says more of an operator key than its row: anybody may have registered it, before or since. */
  #recordOf(row: KeyRow, time: string): KeyRecord {
    const record = recordOf(row, time);
    const { rotation, until } = this.#parts.log.operators.named(row.fingerprint) ?? {};
    const ended =
      until && ({ status: "succeeded", successor_fingerprint: until.fingerprint, ended_at: until.timestamp } as const);
    const handed = rotation && { predecessor_fingerprint: rotation.old_fingerprint, predecessor_confirmed: true };
    return {
      ...record,
      ...(row.status === "active" && ended),
      ...(row.predecessor_fingerprint === null && handed),
    };
  }

  /** An operator key that is not registered like any other: the one of now, or one that was retired. */
  #operatorRecord(fingerprint: string): KeyRecord | undefined {
    const term = this.#parts.log.operators.named(fingerprint);
    if (!term) return undefined;
    const { key, rotation, until } = term;
    return {
      fingerprint,
      public_key: key.pem,
      pseudonym: OPERATOR_PSEUDONYM,
      algorithm: key.algorithm,
      status: until ? "succeeded" : "active",
      registered_at: rotation?.timestamp ?? this.#parts.log.row("meta", "log")!.created_at,
      expires_at: null,
      log_entry_id: rotation?.entry_id ?? null,
      successor_fingerprint: until?.fingerprint ?? null,
      predecessor_fingerprint: rotation?.old_fingerprint ?? null,
      // Both keys have signed their rotation.
      predecessor_confirmed: rotation ? true : null,
      ended_at: until?.timestamp ?? null,
      proven: false,
      named: false,
    };
  }
}

const registrationMessage = (fingerprint: string, pseudonym: string, expiration: unknown): Uint8Array =>
  Buffer.from(canonicalJson(registrationStatement(fingerprint, pseudonym, (expiration ?? null) as string | null)));

function recordOf(row: KeyRow, time: string): KeyRecord {
  const named = row.named === true;
  // A key that has named itself has signed its predecessor, too: whatever it had not signed was replaced.
  const predecessor_confirmed = row.predecessor_fingerprint === null ? null : named;
  return { ...row, status: statusAt(row, time), named, predecessor_confirmed };
}

type SuccessionLink = Pick<KeyRecord, "fingerprint" | "successor_fingerprint">;

function summarise({
  fingerprint,
  pseudonym,
  algorithm,
  status,
  registered_at,
  expires_at,
  named,
}: KeyRecord): KeySummary {
  return { fingerprint, pseudonym, algorithm, status, registered_at, expires_at, named };
}

/**
 * Checks the algorithm that a request names for a public key. Called after every other member was checked.
 * @throws CairnlogError `invalid-input` with all of `faults`; `invalid-key` when the key is of another algorithm
 */
export function checkAlgorithm(named: unknown, path: string, key: ServerKey, faults: Faults): void {
  if (!isKeyAlgorithm(named)) faults.add(path, `It must be one of ${KEY_ALGORITHMS.join(", ")}.`);
  faults.check();
  if (named !== key.algorithm)
    throw new CairnlogError("invalid-key", `The public key is of the algorithm ${key.algorithm}.`);
}

/** Null if absent. The command checks whether it has passed, because only the command knows its time. */
export function readExpiration(value: unknown, faults: Faults): string | null {
  if (value === undefined || value === null) return null;
  const expiresAt = requestedTime(value);
  if (expiresAt === undefined) faults.add("/expiration_date", "It must be an ISO 8601 date and time with an offset.");
  return expiresAt ?? null;
}
