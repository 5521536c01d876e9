/** Further digests of an entry besides the primary SHA-256, which an operator may configure; computed by hash-wasm. */
import type { IHasher } from "hash-wasm";

/** Names as they are written in `entry_hashes`. */
export type DigestName = "sha2-512" | "sha3-256" | "blake3";

/** One digest, in lower-case hex. */
interface Digest {
  readonly algorithm: DigestName;
  readonly digest_hex: string;
}

type Library = typeof import("hash-wasm");

const CREATE: Readonly<Record<DigestName, (library: Library) => Promise<IHasher>>> = {
  "sha2-512": (library) => library.createSHA512(),
  "sha3-256": (library) => library.createSHA3(256),
  blake3: (library) => library.createBLAKE3(),
};

/**
 * Loads the hash functions once. The returned function computes all digests of `names`, in that order, synchronously.
 */
export async function createDigests(names: readonly DigestName[]): Promise<(preimage: Uint8Array) => Digest[]> {
  // Loaded only where it is needed: that takes as long as to load a tenth of all else.
  const library = names.length ? await import("hash-wasm") : undefined;
  const hashers = await Promise.all(
    names.map(async (algorithm) => ({ algorithm, hasher: await CREATE[algorithm](library!) })),
  );
  return (preimage) =>
    hashers.map(({ algorithm, hasher }) => ({ algorithm, digest_hex: hasher.init().update(preimage).digest("hex") }));
}
