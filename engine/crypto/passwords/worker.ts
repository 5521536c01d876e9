/**
 * argon2id (RFC 9106) in the pool's threads, by hash-wasm. Each password takes about 50 ms and 19 MiB, too much for the
 * thread that answers requests.
 */
import { timingSafeEqual } from "node:crypto";
import { argon2id } from "hash-wasm";

/** The cost parameters of a hash, and its salt. */
interface Parameters {
  /** KiB. */
  readonly memorySize: number;
  readonly iterations: number;
  readonly parallelism: number;
  readonly salt: Uint8Array;
}

const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;
const TAG_BYTES = 32;

/** The hash of a password in PHC string format. */
export function hashPassword({ password, ...parameters }: Parameters & { readonly password: string }): Promise<string> {
  return argon2id({ ...parameters, password, hashLength: TAG_BYTES, outputType: "encoded" });
}

/**
 * Whether `phc` is the hash of `password`, with the parameters in `phc`; compared in constant time. Rejects if the text
 * was not written by `hashPassword`.
 */
export async function verifyPassword({ password, phc }: { password: string; phc: string }): Promise<boolean> {
  const [, memory, iterations, parallelism, salt, tag] = PHC.exec(phc) ?? [];
  if (tag === undefined) throw new Error("the stored hash is not argon2id in PHC string format");
  const stored = Buffer.from(tag, "base64");
  const computed = await argon2id({
    password,
    memorySize: Number(memory),
    iterations: Number(iterations),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt!, "base64"),
    hashLength: stored.length,
    outputType: "binary",
  });
  return timingSafeEqual(computed, stored);
}
