/** Further digests of an entry besides the primary SHA-256, which an operator may configure; computed by hash-wasm. */
import type { IHasher } from "hash-wasm";
import { inputError } from "../base/error.js";

/** Names as they are written in `entry_hashes`. */
export type DigestName = "sha2-512" | "sha3-256" | "blake3";

/** One digest, in lower-case hex. */
interface Digest {
  readonly algorithm: DigestName;
  readonly digest_hex: string;
}

/** The library is loaded where it is needed: that takes as long as to load a tenth of all else. */
const CREATE: Readonly<Record<DigestName, () => Promise<IHasher>>> = {
  "sha2-512": async () => (await import("hash-wasm")).createSHA512(),
  "sha3-256": async () => (await import("hash-wasm")).createSHA3(256),
  blake3: async () => (await import("hash-wasm")).createBLAKE3(),
};

/**
 * Loads the hash functions once. The returned function computes all digests of `names`, in that order, synchronously.
 * @throws CairnlogError `invalid-input` for a name that is none, or is there twice: no reader takes such entries
 */
export async function createDigests(names: readonly DigestName[]): Promise<(preimage: Uint8Array) => Digest[]> {
  // A list with a name in it spells that name.
  const isName = (name: unknown) => typeof name === "string" && Object.hasOwn(CREATE, name);
  const isList = (given: unknown) => Array.isArray(given) && given.every(isName);
  if (!isList(names) || new Set(names).size < names.length)
    throw inputError(`\`digests\` takes each of ${Object.keys(CREATE).join(", ")} once.`);
  const hashers = await Promise.all(names.map(async (algorithm) => ({ algorithm, hasher: await CREATE[algorithm]() })));
  return (preimage) =>
    hashers.map(({ algorithm, hasher }) => ({ algorithm, digest_hex: hasher.init().update(preimage).digest("hex") }));
}
