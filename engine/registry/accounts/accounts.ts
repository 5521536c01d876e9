/**
 * Accounts: a name, a way to reach the holder, and keys. Opening an account needs no proof. A recovery key gives access
 * to a lost account again. Everything is in private rows; nothing of it enters the log.
 */
import { randomUUID } from "node:crypto";
import type * as contract from "../../contract/identity/accounts.js";
import type { Value } from "../../contract/types.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import type { PasswordHasher } from "../../crypto/passwords/password.js";
import type { SignatureVerifier } from "../../crypto/pool/pool.js";
import type { Log } from "../../log/log.js";
import { type Clock, formatTimestamp } from "../../log/state/clock.js";
import type { StateReader } from "../../log/state/projection.js";
import type { UserRow } from "../../store/schema/rows.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { accountStatement, DISPLAY_NAME, MAX_EMAIL_OCTETS } from "../../verify/keys/contract.js";
import { Tries } from "../access/tries.js";
import { readName, wrongKeyStatus } from "../events/keys.js";
import { checkPossession, type Keys } from "../keys/keys.js";
import { Faults, members } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import {
  type Credential,
  checkFree,
  checkNameFree,
  createAccount,
  type DraftCredential,
  recoverAccount,
  unauthenticated,
} from "./commands.js";
import { type CredentialForm, type Credentials, readCredential } from "./credentials.js";
import { isEmail } from "./email.js";
import { canonicalRecoveryKey, generateRecoveryKey } from "./recoverykey.js";

type AccountInput = Value<typeof contract.OpenAccount>;

type Recovery = Value<typeof contract.RecoverAccount>;

type OpenedAccount = Value<typeof contract.OpenedAccount>;

type RecoveredAccount = Value<typeof contract.RecoveredAccount>;

/** Wrong recovery keys in a quarter of an hour, for one name and from one address. */
const RECOVERY_TRIES = 5;
const RECOVERY_WINDOW_SECONDS = 900;

/** The form in which display names are compared: canonical, and case-folded in full (`ß` is `ss`, `ς` is `σ`). */
export function foldName(name: string): string {
  // One direction is not enough: upper case has no small final sigma, and only lower case maps ẞ to ß.
  return name.normalize("NFD").toLowerCase().toUpperCase().toLowerCase().normalize("NFC");
}

interface Parts {
  readonly log: Log;
  readonly writes: Writes;
  readonly keys: Keys;
  readonly credentials: Credentials;
  readonly verifier: Pick<SignatureVerifier, "verify">;
  readonly hasher: PasswordHasher;
  readonly clock: Clock;
}

export class Accounts {
  readonly #parts: Parts;
  readonly #triesOfNames: Tries;
  readonly #triesOfAddresses: Tries;
  /** The hash of a random key, checked when there is no account. */
  #decoy: Promise<string> | null = null;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
    const tries = { limit: RECOVERY_TRIES, windowSeconds: RECOVERY_WINDOW_SECONDS, clock: parts.clock };
    this.#triesOfNames = new Tries(tries);
    this.#triesOfAddresses = new Tries(tries);
  }

  /**
   * Opens an account with its first credential, in one transaction (`POST /users`; docs/spec §6.1).
   * If somebody bound the key to another account without its signature, a request that the key has signed takes it from
   * there.
   * @throws CairnlogError `invalid-input`; `not-found` when the key is not registered; `wrong-key-status` when it is
   *   not active; `invalid-signature`; `already-exists` when it is on an account or the name is taken; `forbidden` when
   *   the hardware attestation is not valid; `overloaded`; and as `Log.execute` does
   */
  async create(account: AccountInput, client: Caller | null = null): Promise<OpenedAccount> {
    const input = members(account);
    const faults = new Faults();
    const name = readName(input.display_name, "/display_name", DISPLAY_NAME.max, faults)!;
    const { email } = input;
    if (!isEmail(email)) faults.add("/email", `It must be an e-mail address of at most ${MAX_EMAIL_OCTETS} octets.`);
    const form = readCredential(input, faults);
    faults.check();

    const confirmed = await this.#isConfirmed(input);
    const credential = this.#draft(form, null, confirmed);
    const signer = confirmed ? credential.key_fingerprint : null;
    this.#parts.writes.check(client, signer);
    const folded_name = foldName(name);
    // Checked against the disk first, so that nobody makes the service hash a key for an account that cannot be opened.
    checkNameFree(committedState(this.#parts.log), folded_name);
    const recovery = await this.#newRecoveryKey();
    const { value } = await this.#parts.writes.execute(
      createAccount,
      {
        user: { id: randomUUID(), display_name: name, email: email as string, recovery_hash: recovery.hash },
        folded_name,
        credential,
        hardware_roots: this.#parts.credentials.hardwareRoots,
      },
      client,
      signer,
    );
    return answer(value.user, value.credential, recovery.key);
  }

  /**
   * Recovers an account (`POST /users/recover`; docs/spec §6.2). It revokes the active credentials,
   * binds the new key and replaces the recovery key, in one transaction. The new key may be one of the account's own.
   * @param address the client, as far as wrong tries are counted together
   * @throws CairnlogError `invalid-input`; `rate-limited` after five wrong tries for the name or from the address;
   *   `unauthenticated` for an unknown name and a wrong key alike; then as `create` does
   */
  async recover(request: Recovery, address: string, client: Caller | null = null): Promise<RecoveredAccount> {
    const input = members(request);
    const faults = new Faults();
    const name = readName(input.pseudonym, "/pseudonym", DISPLAY_NAME.max, faults)!;
    const { recovery_key } = input;
    if (typeof recovery_key !== "string") faults.add("/recovery_key", "It must be a string.");
    const form = readCredential(input, faults);
    faults.check();

    const known = await this.#authenticate(foldName(name), recovery_key as string, address);
    const credential = this.#draft(form, known.id, false);
    // No key signs this. The recovery key has shown whose account it is, and the key that the account gets must be a writer's.
    const writer = credential.key_fingerprint;
    this.#parts.writes.check(client, writer);
    const recovery = await this.#newRecoveryKey();
    const { value } = await this.#parts.writes.execute(
      recoverAccount,
      {
        user_id: known.id,
        known_hash: known.recovery_hash,
        recovery_hash: recovery.hash,
        credential,
        hardware_roots: this.#parts.credentials.hardwareRoots,
      },
      client,
      null,
      writer,
    );
    return { ...answer(value.user, value.credential, recovery.key), revoked_credentials: value.revoked };
  }

  /**
   * The account with this name, if the recovery key is right. The client chooses both. If there is no such account, the
   * key is checked against a decoy hash, so that the time does not reveal which names exist.
   */
  async #authenticate(folded: string, recoveryKey: string, address: string): Promise<UserRow> {
    const giveBack = this.#takeTry(folded, address);
    const key = canonicalRecoveryKey(recoveryKey);
    if (key === undefined) throw unauthenticated();
    let user: UserRow | undefined;
    let isRight: boolean;
    try {
      const decoy = await this.#decoyHash();
      const id = this.#parts.log.row("userNames", folded)?.user_id;
      user = id === undefined ? undefined : this.#parts.log.row("users", id);
      isRight = await this.#parts.hasher.verify(key, user?.recovery_hash ?? decoy);
    } catch (error) {
      giveBack();
      throw error;
    }
    if (!user || !isRight) throw unauthenticated();
    giveBack();
    return user;
  }

  /** Counts a try for both, or for neither. @returns a function that gives it back */
  #takeTry(folded: string, address: string): () => void {
    const ofAddress = this.#triesOfAddresses.take(address);
    try {
      const ofName = this.#triesOfNames.take(folded);
      return () => {
        ofAddress();
        ofName();
      };
    } catch (error) {
      ofAddress();
      throw error;
    }
  }

  /** Awaited for every name, so that the time to make the decoy reveals nothing either. */
  #decoyHash(): Promise<string> {
    this.#decoy ??= this.#parts.hasher.hash(hashable(generateRecoveryKey())).catch((error) => {
      this.#decoy = null;
      throw error;
    });
    return this.#decoy;
  }

  async #newRecoveryKey(): Promise<{ readonly key: string; readonly hash: string }> {
    const key = generateRecoveryKey();
    return { key, hash: await this.#parts.hasher.hash(hashable(key)) };
  }

  /** Whether the key has signed the request to open this account, as it was sent. The input has been checked. */
  async #isConfirmed(input: JsonObject): Promise<boolean> {
    const { display_name, email, key_fingerprint, possession_signature } = input;
    if (possession_signature === undefined || possession_signature === null) return false;
    const { public_key } = this.#parts.keys.find(key_fingerprint as string);
    await checkPossession(this.#parts.verifier, importPublicKey(public_key), {
      message: () => {
        const statement = accountStatement(display_name as string, email as string, key_fingerprint as string);
        return Buffer.from(canonicalJson(statement));
      },
      signature: possession_signature,
      path: "/possession_signature",
      about: "this account",
    });
    return true;
  }

  /**
   * @param userId the account that the key may already be on
   * @param confirmed whether the key has signed that it is to be on this account
   */
  #draft(form: CredentialForm, userId: string | null, confirmed: boolean): DraftCredential {
    const key = this.#parts.keys.find(form.fingerprint);
    const { fingerprint: key_fingerprint } = key;
    // A retired operator key need have no row, which is where the command looks.
    if (key.status !== "active") throw wrongKeyStatus(key_fingerprint, key);
    checkFree(
      committedState(this.#parts.log),
      { key_fingerprint, confirmed },
      formatTimestamp(this.#parts.clock()),
      userId,
    );
    return this.#parts.credentials.draft(form, key, confirmed);
  }
}

/** A key that the service generated always has a canonical form. */
const hashable = (key: string): string => canonicalRecoveryKey(key)!;

function answer({ id, display_name, created_at }: UserRow, credential: Credential, key: string): OpenedAccount {
  return { user: { id, display_name, created_at }, credential, recovery_key: key };
}

/** The state on disk, for questions that do not need a command. */
export function committedState(log: Log): Pick<StateReader, "get"> {
  return { get: (table, key) => log.row(table, key) };
}
