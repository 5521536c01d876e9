/** Which keys have a password, as far as it can be read. In the thread that opened the registry. */

import { Recent } from "../../base/recent.js";
import type { Log } from "../../log/log.js";
import type { Writer } from "../../log/state/executor.js";

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
