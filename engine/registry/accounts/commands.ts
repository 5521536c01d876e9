/** Commands that create and end accounts and their credentials. They write private rows, and no entries. */

import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/identity/accounts.js";
import type { Value } from "../../contract/types.js";
import { define, type Transaction } from "../../log/state/commands.js";
import type { StateReader } from "../../log/state/projection.js";
import type { StateRow } from "../../store/changeset.js";
import type { CredentialRow, UserRow } from "../../store/schema/rows.js";
import { keyStanding, statusWords, wrongKeyStatus } from "../events/keys.js";

// The facts that follow from a credential's row.

/** A credential as it is served. */
export type Credential = Value<typeof contract.Enrolled>["credential"];

/** A credential that is ready to be written if its key is still free. */
export type DraftCredential = Omit<CredentialRow, "user_id" | "status" | "created_at" | "revoked_at">;

/** The credential of a key, whatever its status; undefined when it is on no account. */
function credentialOf(state: Pick<StateReader, "get">, fingerprint: string): CredentialRow | undefined {
  const bound = state.get("credentialKeys", fingerprint);
  return bound && state.get("credentials", [bound.user_id, bound.credential_id]);
}

/**
 * Whether a credential is hardware-backed. The current roots decide. If a root was removed, or roots were set after a
 * declaration was believed, the credential is no longer hardware-backed.
 * @param hardwareRoots ids of the roots that are trusted now; if there are none, the declarations of credentials are
 *   believed
 */
function isHardwareBacked(
  { credential_type, hardware_root }: Pick<CredentialRow, "credential_type" | "hardware_root">,
  hardwareRoots: readonly string[],
): boolean {
  if (credential_type !== "hardware") return false;
  return hardwareRoots.length === 0 || (hardware_root !== null && hardwareRoots.includes(hardware_root));
}

/** Whether a key has an active credential that is hardware-backed. */
export function hasHardware(
  state: Pick<StateReader, "get">,
  fingerprint: string,
  hardwareRoots: readonly string[],
): boolean {
  const row = credentialOf(state, fingerprint);
  return row?.status === "active" && isHardwareBacked(row, hardwareRoots);
}

/**
 * Maximum number of credentials of an account, revoked ones included. A recovery reads all of them, and so does a command
 * that takes a key away; both run while everybody's appends wait.
 */
const MAX_CREDENTIALS = 100;

interface AccountChange {
  readonly credential: DraftCredential;
  /** The trusted roots, as `isHardwareBacked` takes them. */
  readonly hardware_roots: readonly string[];
}

/** An account and its new credential after a command. */
interface Bound {
  readonly user: UserRow;
  readonly credential: Credential;
}

/**
 * @throws CairnlogError `already-exists` when the name is taken; `wrong-key-status`, `already-exists` as `checkFree`
 */
export const createAccount = define(
  "account.create",
  (
    transaction: Transaction,
    {
      user,
      folded_name,
      credential,
      hardware_roots,
    }: AccountChange & { readonly user: Omit<UserRow, "created_at">; readonly folded_name: string },
  ): Bound => {
    checkNameFree(transaction, folded_name);
    checkFree(transaction, credential, transaction.timestamp, null);
    const row = { ...user, created_at: transaction.timestamp };
    transaction.put("users", user.id, row);
    transaction.put("userNames", folded_name, { user_id: user.id });
    return { user: row, credential: bind(transaction, credential, user.id, hardware_roots) };
  },
);

/**
 * Revokes the active credentials of an account, binds a new one and replaces the recovery key. In an account that is full,
 * the oldest credentials make room: an account must always be recoverable.
 * @throws CairnlogError `unauthenticated` when the recovery key was used since `known_hash` was read; as `checkFree`
 */
export const recoverAccount = define(
  "account.recover",
  (
    transaction: Transaction,
    {
      user_id,
      known_hash,
      recovery_hash,
      credential,
      hardware_roots,
    }: AccountChange & {
      readonly user_id: string;
      /** The hash of the recovery key that the caller has given. */
      readonly known_hash: string;
      readonly recovery_hash: string;
    },
  ): Bound & { readonly revoked: number } => {
    const user = transaction.get("users", user_id)!;
    // Another recovery used the same key meanwhile. A recovery key works only once.
    if (user.recovery_hash !== known_hash) throw unauthenticated();
    checkFree(transaction, credential, transaction.timestamp, user_id);
    const held = credentialsOf(transaction, user_id);
    const revoked = revokeAll(transaction, held);
    transaction.put("users", user_id, { ...user, recovery_hash });
    const bound = bind(transaction, credential, user_id, hardware_roots);
    for (const { key, row } of oldestFirst(held).slice(0, Math.max(0, held.length + 1 - MAX_CREDENTIALS)))
      remove(transaction, key, row);
    return { user, credential: bound, revoked };
  },
);

/**
 * Binds a further key to the account of the issuing one.
 * @throws CairnlogError `not-found` when the issuing key is on no account; `forbidden` when its credential is revoked,
 *   or either key is not hardware-backed; `key-not-active` when it is not active; `precondition-failed` for an account that
 *   is full; as `checkFree`
 */
export const enrollCredential = define(
  "credential.enroll",
  (
    transaction: Transaction,
    { issuing_fingerprint, credential, hardware_roots }: AccountChange & { readonly issuing_fingerprint: string },
  ): Credential => {
    const issuing = credentialOf(transaction, issuing_fingerprint);
    if (!issuing) throw new CairnlogError("not-found", "The issuing key is on no account.");
    if (issuing.status !== "active")
      throw new CairnlogError("forbidden", "The credential of the issuing key is revoked.");
    const standing = keyStanding(transaction, issuing_fingerprint, transaction.timestamp);
    if (standing.status !== "active")
      throw new CairnlogError("key-not-active", `The issuing key is ${statusWords(standing)}.`);
    checkFree(transaction, credential, transaction.timestamp, null);
    if (credentialOf(transaction, credential.key_fingerprint)?.user_id === issuing.user_id)
      throw isOnAccount(credential.key_fingerprint);
    if (credentialsOf(transaction, issuing.user_id).length >= MAX_CREDENTIALS)
      throw new CairnlogError(
        "precondition-failed",
        `The account has ${MAX_CREDENTIALS} credentials, and takes no more.`,
      );
    if (!isHardwareBacked(issuing, hardware_roots))
      throw new CairnlogError("forbidden", "The issuing key is not hardware-backed.");
    if (!isHardwareBacked(credential, hardware_roots))
      throw new CairnlogError("forbidden", "The new key is not hardware-backed.");
    return bind(transaction, credential, issuing.user_id, hardware_roots);
  },
);

/**
 * Checks that a key may be bound. Commands call it. It is also called before a command, to avoid needless work. If
 * somebody bound the key to an account without its signature, a request that the key has signed may take it from there.
 * @param userId the account that the key may already be on; null if it must not be on any
 * @throws CairnlogError `wrong-key-status` when it is not active, `already-exists` when it is on an account
 */
export function checkFree(
  state: Pick<StateReader, "get">,
  { key_fingerprint, confirmed }: Pick<DraftCredential, "key_fingerprint" | "confirmed">,
  time: string,
  userId: string | null,
): void {
  const standing = keyStanding(state, key_fingerprint, time);
  if (standing.status !== "active") throw wrongKeyStatus(key_fingerprint, standing);
  const bound = credentialOf(state, key_fingerprint);
  if (bound && bound.user_id !== userId && (!confirmed || bound.confirmed)) throw isOnAccount(key_fingerprint);
}

const isOnAccount = (fingerprint: string): CairnlogError =>
  new CairnlogError("already-exists", `The key ${fingerprint} is on an account already.`);

/** Checks that a display name is free. @throws CairnlogError `already-exists` */
export function checkNameFree(state: Pick<StateReader, "get">, foldedName: string): void {
  if (state.get("userNames", foldedName)) throw new CairnlogError("already-exists", "This display name is taken.");
}

/** The error is the same for an unknown name and for a wrong key, so that it does not reveal which names exist. */
export function unauthenticated(): CairnlogError {
  return new CairnlogError("unauthenticated", "There is no account with this name and this recovery key.");
}

/**
 * Writes a credential whose key was found free. If the key is on another account without its signature, it is removed
 * there.
 */
function bind(
  transaction: Transaction,
  draft: DraftCredential,
  userId: string,
  hardwareRoots: readonly string[],
): Credential {
  const { id, key_fingerprint } = draft;
  const before = credentialOf(transaction, key_fingerprint);
  if (before && before.user_id !== userId) removeAll(transaction, before.user_id, key_fingerprint);
  const row: CredentialRow = {
    ...draft,
    // A confirmation by the key stays valid while the key stays on the account.
    confirmed: draft.confirmed === true || (before?.user_id === userId && before.confirmed === true),
    user_id: userId,
    status: "active",
    created_at: transaction.timestamp,
    revoked_at: null,
  };
  transaction.put("credentials", [userId, id], row);
  transaction.put("credentialKeys", key_fingerprint, { user_id: userId, credential_id: id });
  const { user_id: _user, hardware_root: _root, confirmed: _confirmed, ...shown } = row;
  return { ...shown, hardware_backed: isHardwareBacked(row, hardwareRoots) };
}

type CredentialAt = StateRow<"credentials">;

const credentialsOf = (transaction: Transaction, userId: string): readonly CredentialAt[] =>
  transaction.range("credentials", [userId], [userId, "\uffff"]);

const oldestFirst = (held: readonly CredentialAt[]): CredentialAt[] =>
  held.toSorted((a, b) => (a.row.created_at < b.row.created_at ? -1 : a.row.created_at > b.row.created_at ? 1 : 0));

/** Removes every credential of a key from an account. */
function removeAll(transaction: Transaction, userId: string, fingerprint: string): void {
  for (const { key, row } of credentialsOf(transaction, userId))
    if (row.key_fingerprint === fingerprint) transaction.put("credentials", key, undefined);
}

/** Removes a credential. If it is the newest of its key, the key is on no account any more. */
function remove(transaction: Transaction, key: CredentialAt["key"], { key_fingerprint, id }: CredentialRow): void {
  transaction.put("credentials", key, undefined);
  if (transaction.get("credentialKeys", key_fingerprint)?.credential_id === id)
    transaction.put("credentialKeys", key_fingerprint, undefined);
}

/** Revokes every credential that is active. @returns how many there were */
function revokeAll(transaction: Transaction, held: readonly CredentialAt[]): number {
  const active = held.filter(({ row }) => row.status === "active");
  for (const { key, row } of active)
    transaction.put("credentials", key, { ...row, status: "revoked", revoked_at: transaction.timestamp });
  return active.length;
}
