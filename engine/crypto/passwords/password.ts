/**
 * Passwords: their normal form, and their hashes (argon2id, RFC 9106), which the pool computes. Every client that sends
 * passwords uses our memory and time, so few are hashed at the same time and few may wait.
 */
import { randomBytes } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import { PASSWORD } from "../../verify/keys/contract.js";
import type { Pool } from "../pool/pool.js";

/** Normalising joins at most four characters into one; longer text is refused before it is normalised. */
const MAX_RAW_LENGTH = 2 * 4 * PASSWORD.max;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** 19 MiB and two passes: the OWASP recommendation with the least memory among those with two passes. */
const MEMORY_KIB = 19_456;
const ITERATIONS = 2;
const PARALLELISM = 1;
const SALT_BYTES = 16;

/** Passwords that may wait: about ten seconds of work for one worker. */
const MAX_WAITING = 256;

const WORKER = new URL("./worker.js", import.meta.url);

/**
 * The normal form of a password: NFKC, so that it does not depend on the keyboard.
 * @returns undefined if that form does not have 8 to 1024 characters (code points), or cannot be encoded in UTF-8
 */
export function readPassword(value: unknown): string | undefined {
  if (typeof value !== "string" || value.length > MAX_RAW_LENGTH || LONE_SURROGATE.test(value)) return undefined;
  const password = value.normalize("NFKC");
  const characters = [...password].length;
  return characters >= PASSWORD.min && characters <= PASSWORD.max ? password : undefined;
}

export class PasswordHasher {
  readonly #pool: Pool;
  /** Less than the number of workers, because they also sign heads. */
  readonly #atOnce: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
    this.#atOnce = Math.max(1, pool.workers - 1);
  }

  /**
   * The argon2id hash in PHC string format, with a new salt.
   * @param password as `readPassword` returns it
   * @throws CairnlogError `overloaded` if too many wait
   */
  hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    return this.#run("hashPassword", {
      password,
      salt,
      memorySize: MEMORY_KIB,
      iterations: ITERATIONS,
      parallelism: PARALLELISM,
    });
  }

  /**
   * Whether `password` is the one that was hashed. Takes the same time for a wrong and for a right password.
   * @param password as `readPassword` returns it
   * @throws CairnlogError `overloaded` if too many wait
   */
  verify(password: string, phc: string): Promise<boolean> {
    return this.#run("verifyPassword", { password, phc });
  }

  async #run<T>(name: string, input: unknown): Promise<T> {
    if (this.#running >= this.#atOnce) {
      if (this.#waiting.length >= MAX_WAITING)
        throw new CairnlogError("overloaded", "Too many passwords are waiting to be checked. Try again shortly.");
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running++;
    try {
      return await this.#pool.run<T>(WORKER, name, input);
    } finally {
      // The slot passes to the next one in the queue, if there is one.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
