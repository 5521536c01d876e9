/**
 * Verifies signatures in micro-batches: what one turn of the event loop brings is one task of the pool.
 * Few signatures on an idle verifier are checked at once, since a round trip would cost too much beside them.
 */

import { keyToBytes, type ServerKey } from "../keys/spki.js";
import { verifySync } from "../signatures.js";
import { pack } from "./packing.js";
import type { Pool } from "./pool.js";

/** Checks in one task: about 4 ms of work, so that workers share a burst and nobody waits long behind it. */
const TASK_CHECKS = 64;

/**
 * Up to this many are checked on the calling thread, shared by the workers: with one, 64. A task of the pool costs some
 * 120 µs of CPU on both sides together, nearly all of it for waking threads, and on a machine with two cores far more,
 * as the worker takes the place of what it works for: 48 µs an attestation at 64 connections, where tasks held 36.
 */
const INLINE_CHECKS = 64;
/** However many workers there are: below it a task costs more than a tenth of what is in it. */
const MIN_INLINE_CHECKS = 32;

const WORKER = new URL("./worker.js", import.meta.url);

interface Check {
  readonly key: ServerKey;
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
  readonly resolve: (valid: boolean) => void;
}

export class SignatureVerifier {
  readonly #pool: Pool;
  readonly #inline: number;
  #waiting: Check[] = [];
  #scheduled = false;
  #running = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
    this.#inline = Math.max(MIN_INLINE_CHECKS, Math.floor(INLINE_CHECKS / pool.workers));
  }

  /** Whether `signature` is `key`'s over `message`. Never rejects. */
  verify(key: ServerKey, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waiting.push({ key, message, signature, resolve });
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        this.#dispatch();
      });
    });
  }

  #dispatch(): void {
    if (this.#waiting.length <= this.#inline && this.#running === 0) {
      for (const { key, message, signature, resolve } of this.#waiting.splice(0))
        resolve(verifySync(key, message, signature));
      return;
    }
    // While every worker is busy, checks gather and make larger tasks.
    while (this.#waiting.length && this.#running < this.#pool.workers) this.#run(this.#waiting.splice(0, TASK_CHECKS));
  }

  #run(checks: readonly Check[]): void {
    this.#running++;
    const packed = pack(checks.flatMap(({ key, message, signature }) => [keyToBytes(key), message, signature]));
    this.#pool
      .run<Uint8Array>(WORKER, "verifyBatch", { checks: packed }, [packed.buffer])
      .then(
        (verdicts) => {
          for (const [i, { resolve }] of checks.entries()) resolve(verdicts[i] === 1);
        },
        // The worker died, of something else than these: they are few enough to be checked here.
        () => {
          for (const { key, message, signature, resolve } of checks) resolve(verifySync(key, message, signature));
        },
      )
      .finally(() => {
        this.#running--;
        this.#dispatch();
      });
  }
}
