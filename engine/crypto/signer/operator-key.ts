/** The operator key, as a small interface: it signs tree heads, and its fingerprint identifies the log. */
import { closeSync, fsyncSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { CairnlogError } from "../../base/error.js";
import { draftOf, dropDraft, flushFolders, giveToOwner, makeFolders, nameNew } from "../../base/files.js";
import type { KeyAlgorithm } from "../../verify/keys/publickey.js";
import { generatePrivateKey, privateKey, signEach, verifySync } from "../keys/signatures.js";
import { importPublicKey, type ServerKey } from "../keys/spki.js";
import type { Pool } from "../pool/pool.js";
import { pack, unpack } from "../pool/worker.js";

/**
 * Up to this many heads are signed on the calling thread. A task of the pool costs about 120 µs of CPU on both threads
 * together, mostly for waking threads. A signature costs 15–30 µs, but 700 µs with an RSA key.
 */
const INLINE_SIGNATURES: Readonly<Record<KeyAlgorithm, number>> = { ed25519: 64, "ecdsa-p256": 32, "rsa-2048": 2 };

const WORKER = new URL("../pool/worker.js", import.meta.url);

/** A provider of operator signatures. */
export interface OperatorKey {
  readonly fingerprint: string;
  readonly public: ServerKey;
  /** Signs each message, in order. Rejects as long as the key cannot be used. */
  sign(messages: readonly Uint8Array[]): Promise<readonly Uint8Array[]>;
}

/**
 * Fingerprints by every `sign` that holds its private key in this process. A wrapper around one is another function, and is
 * not in here.
 */
const ownSigns = new WeakMap<OperatorKey["sign"], string>();

/**
 * Whether the signatures come from libsodium or OpenSSL in this process, by a private key from which `key` was computed:
 * then none can be by another key or for another message.
 */
const isSignedHere = ({ sign }: Pick<OperatorKey, "sign">, key: ServerKey): boolean =>
  ownSigns.get(sign) === key.fingerprint;

/**
 * An operator key that is held in memory; `pool`, if given, signs large batches.
 * @throws CairnlogError `invalid-key`
 */
export function operatorKey(pem: string, pool?: Pool): OperatorKey {
  const key = privateKey(pem);
  const sign = async (messages: readonly Uint8Array[]) =>
    pool && messages.length > INLINE_SIGNATURES[key.public.algorithm]
      ? signInPool(pool, pem, messages)
      : signEach(key, messages);
  const { fingerprint } = key.public;
  ownSigns.set(sign, fingerprint);
  return { fingerprint, public: key.public, sign };
}

/**
 * The operator key of a log that is only read here: signatures can be verified but not made.
 * @throws CairnlogError `invalid-key`; `signer-unavailable` on every call of `sign`
 */
export function publicOperatorKey(pem: string): OperatorKey {
  const key = importPublicKey(pem);
  return {
    fingerprint: key.fingerprint,
    public: key,
    sign: async () => {
      throw new CairnlogError("signer-unavailable", "Only the public operator key is available here.");
    },
  };
}

/** Splits the messages evenly among the workers. */
async function signInPool(pool: Pool, pem: string, messages: readonly Uint8Array[]): Promise<Uint8Array[]> {
  const share = Math.ceil(messages.length / pool.workers);
  const parts: Promise<Uint8Array>[] = [];
  for (let from = 0; from < messages.length; from += share) {
    const packed = pack(messages.slice(from, from + share));
    parts.push(pool.run<Uint8Array>(WORKER, "signBatch", { pem, messages: packed }, [packed.buffer]));
  }
  return (await Promise.all(parts)).flatMap(unpack);
}

/**
 * Reads the operator key from a PEM file. If the file does not exist, makes an Ed25519 key there, mode 0600.
 * @throws CairnlogError `invalid-key`; as `readOrMakeKey` does
 */
export function openOperatorKey(path: string, pool?: Pool): OperatorKey {
  return operatorKey(
    readOrMakeKey(path, () => generatePrivateKey("ed25519")),
    pool,
  );
}

/**
 * The PEM in the file of a private key. If the file does not exist, writes what `make` returns there, mode 0600.
 *
 * If we crash here: the file appears under its name only after all its bytes are on disk, and nothing is signed before that.
 * @throws CairnlogError `storage-failed`
 */
export function readOrMakeKey(path: string, make: () => string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT")
      throw new CairnlogError("storage-failed", `The operator key ${path} cannot be read.`, { cause });
  }
  const pem = make();
  try {
    makeFolders(dirname(path));
    writeKeyFile(path, pem);
    giveToOwner(path);
  } catch (cause) {
    throw new CairnlogError("storage-failed", `No operator key could be created at ${path}.`, { cause });
  }
  return pem;
}

/**
 * Writes a private key to a new file, mode 0600.
 * @throws the file system's error; `EEXIST` if the file exists: a key is never overwritten.
 */
export function writeKeyFile(path: string, pem: string): void {
  const draft = draftOf(path);
  const file = openSync(draft, "wx", 0o600);
  try {
    try {
      // `writeSync` is not used: if there is space only for a part, it writes that part and does not throw.
      writeFileSync(file, pem);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    nameNew(draft, path);
  } finally {
    dropDraft(draft);
  }
  flushFolders(dirname(path));
}

/** Whoever signs the tree heads. The log knows nothing else of keys. */
export interface Signer {
  /** `sha256:` + hex of SHA-256 over the key's SPKI; the `key_id` of every head. */
  readonly fingerprint: string;
  /**
   * Signs each message, in order; called with the heads of one batch at a time.
   * Rejecting fails the batch and leaves the log as it is on disk; the next batch asks again.
   */
  sign(messages: readonly Uint8Array[]): Promise<readonly Uint8Array[]>;
}

/**
 * Asks for a signature of each message, at least one. What a signer answers goes on disk for ever, and it may be a token
 * behind a driver. So the last signature is verified, for 50 µs, and of the others the length: an answer of another key
 * or for another call cannot pass. A key in this process cannot answer so, and its signatures are not verified.
 * @param key the signer's public key
 * @returns all signatures, one after the other, in a copy: the signer may use its memory again
 * @throws RangeError for another answer than one signature for each message; what the signer throws
 */
export async function signatures(
  signer: Pick<Signer, "sign">,
  key: ServerKey,
  messages: readonly Uint8Array[],
): Promise<Buffer> {
  const answer = await signer.sign(messages);
  const count = messages.length;
  const last = answer[count - 1];
  const isSigned = last !== undefined && (isSignedHere(signer, key) || verifySync(key, messages[count - 1]!, last));
  if (answer.length !== count || !isSigned) throw misfit();
  const { length } = last;
  const joined = Buffer.allocUnsafeSlow(length * count);
  for (let i = 0; i < count; i++) {
    const signature: unknown = answer[i];
    if (!(signature instanceof Uint8Array) || signature.length !== length) throw misfit();
    joined.set(signature, length * i);
  }
  return joined;
}

const misfit = (): RangeError => new RangeError("The signer did not answer with its signature of each message.");
