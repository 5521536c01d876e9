/**
 * Passwords: the optional second factor of a key (docs/spec §5.5). Only an argon2id hash is stored, in a
 * private row. A client must prove that it holds the key before it can try passwords.
 */
import { randomUUID } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import { Recent } from "../../base/recent.js";
import { type PasswordHasher, readPassword } from "../../crypto/passwords/password.js";
import type { Log } from "../../log/log.js";
import type { Clock } from "../../log/state/clock.js";
import type { Writer } from "../../log/state/executor.js";
import { PASSWORD } from "../../verify/keys/contract.js";
import { invalidInput } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import { setPassword, wrongPassword } from "./commands.js";
import { Tries } from "./tries.js";

/** Wrong passwords for one key in a quarter of an hour (docs/spec §15.1). */
export const DEFAULT_PASSWORD_TRIES = 5;
export const PASSWORD_WINDOW_SECONDS = 900;

interface PasswordChange {
  readonly password: string;
  /** The current password. Required if there is one. */
  readonly current_password?: string | null | undefined;
}

/** The passwords of a service, wherever wrong tries are counted. */
export type PasswordService = Pick<PasswordRows, "isSet" | "version"> & Pick<Passwords, "set" | "check">;

export class Passwords implements PasswordService {
  readonly #log: Log;
  readonly #writes: Writes;
  readonly #hasher: PasswordHasher;
  readonly #tries: Tries;
  readonly #rows: PasswordRows;
  /** The newest check of each key, by fingerprint. The checks of one key run one after the other. */
  readonly #turns = new Map<string, Promise<unknown>>();

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    readonly writer: Pick<Writer, "observeRows">;
    readonly writes: Writes;
    readonly hasher: PasswordHasher;
    readonly clock: Clock;
    readonly tries: number;
  }) {
    this.#log = parts.log;
    this.#writes = parts.writes;
    this.#hasher = parts.hasher;
    this.#tries = new Tries({ limit: parts.tries, windowSeconds: PASSWORD_WINDOW_SECONDS, clock: parts.clock });
    this.#rows = new PasswordRows(parts.log, parts.writer);
  }

  isSet(fingerprint: string): boolean {
    return this.#rows.isSet(fingerprint);
  }

  version(fingerprint: string): string | undefined {
    return this.#rows.version(fingerprint);
  }

  /**
   * Sets or changes the key's password (`POST /auth/password`). The caller has verified that the client holds the key.
   * @throws CairnlogError `invalid-input`; `forbidden` when the key has a password and `current_password` is not it;
   *   `rate-limited`, `overloaded`; `key-not-active`; and as `Log.execute` does
   */
  async set(
    fingerprint: string,
    { password, current_password }: PasswordChange,
    client: Caller | null = null,
  ): Promise<void> {
    this.#writes.check(client, fingerprint);
    const next = readPassword(password);
    if (next === undefined)
      throw invalidInput("/password", `A password must have ${PASSWORD.min} to ${PASSWORD.max} characters.`);
    await this.#inTurn(fingerprint, async () => {
      const known_hash = await this.#try(fingerprint, current_password);
      const hash = await this.#hasher.hash(next);
      const change = { fingerprint, known_hash, hash, version: randomUUID() };
      await this.#writes.execute(setPassword, change, client, fingerprint);
    });
  }

  /**
   * Checks the password that came with a proof of the key. A key without one needs none.
   * @param password from the request; undefined or null when there was none
   * @param isHeld whether the request has shown that it comes from the key's holder. Of a signature that anybody may have
   *   read, and sent again, the wrong passwords count apart: they must not use up the holder's tries
   * @throws CairnlogError `forbidden` when it is missing or wrong; `rate-limited` after too many wrong ones;
   *   `overloaded`
   */
  async check(fingerprint: string, password: unknown, isHeld = true): Promise<void> {
    if (this.isSet(fingerprint)) await this.#inTurn(fingerprint, () => this.#try(fingerprint, password, isHeld));
  }

  /** @returns the hash with which it was compared; null for a key without a password */
  async #try(fingerprint: string, password: unknown, isHeld = true): Promise<string | null> {
    const row = this.#log.row("passwords", fingerprint);
    if (!row) return null;
    if (password === undefined || password === null)
      throw new CairnlogError("forbidden", "This key has a password, which must come with the request.");
    const giveBack = this.#tries.take(isHeld ? fingerprint : `${fingerprint} by a signature alone`);
    const candidate = readPassword(password);
    let isRight: boolean;
    try {
      isRight = candidate !== undefined && (await this.#hasher.verify(candidate, row.hash));
    } catch (error) {
      giveBack();
      throw error;
    }
    if (!isRight) throw wrongPassword();
    giveBack();
    return row.hash;
  }

  /**
   * Checks of one key run one after the other, so that right passwords that arrive together do not use up the tries.
   */
  async #inTurn(fingerprint: string, work: () => Promise<unknown>): Promise<void> {
    const turn = (this.#turns.get(fingerprint) ?? Promise.resolve()).then(work, work);
    this.#turns.set(fingerprint, turn);
    try {
      await turn;
    } finally {
      if (this.#turns.get(fingerprint) === turn) this.#turns.delete(fingerprint);
    }
  }
}

/** The version of a password that was set by an earlier version of the service. */
const UNVERSIONED = "unversioned";
/** Maximum number of keys that are remembered to have no password. Each takes about 200 bytes. */
const KEPT_KEYS = 4096;

export class PasswordRows {
  readonly #log: Pick<Log, "row">;
  /**
   * Fingerprints of keys without a password, which are nearly all keys. Looking for a missing row would cost each
   * attestation 2 µs.
   */
  readonly #without = new Recent<string, true>(KEPT_KEYS);

  constructor(log: Pick<Log, "row">, writer: Pick<Writer, "observeRows">) {
    this.#log = log;
    // Also of passwords that were set through another thread, and after a failure, when any may have been set.
    writer.observeRows("passwords", (changes) => {
      if (!changes) this.#without.clear();
      for (const { key } of changes ?? []) this.#without.delete(key);
    });
  }

  /** Whether the key has a password. @param fingerprint as the registry writes it */
  isSet(fingerprint: string): boolean {
    if (this.#without.get(fingerprint)) return false;
    const isSet = this.#log.row("passwords", fingerprint) !== undefined;
    if (!isSet) this.#without.set(fingerprint, true);
    return isSet;
  }

  /**
   * Identifies one password of the key without revealing anything about it. Each change gives a new version. Undefined
   * for a key without a password. A session that began under another version has ended.
   * @param fingerprint as the registry writes it
   */
  version(fingerprint: string): string | undefined {
    if (!this.isSet(fingerprint)) return undefined;
    return this.#log.row("passwords", fingerprint)?.version ?? UNVERSIONED;
  }
}
