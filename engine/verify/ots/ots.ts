/**
 * OpenTimestamps proofs: a tree of messages that leads from a digest to attestations. Reads and writes detached `.ots`
 * files and bare timestamps as the reference client does, and returns what a proof commits to. Proofs are not confirmed
 * here: that a block exists and has the Merkle root can only be checked with the block.
 */
import { concatBytes } from "@noble/hashes/utils.js";
import { CairnlogError } from "../../base/error.js";
import { decodeBase64, toHex } from "../bytes/encoding.js";
import {
  applyOperation,
  attestationBytes,
  compareAttestations,
  compareOperations,
  MAX_MESSAGE,
  type OtsAttestation,
  type OtsOperation,
  OtsReader,
  operationBytes,
  otsError,
  readAttestation,
  readOperation,
} from "./operations.js";

export type { OtsAttestation, OtsOperation } from "./operations.js";

/** `\0OpenTimestamps\0\0Proof\0` and eight bytes that do not occur in text. */
const MAGIC = Uint8Array.from([
  0x00, 0x4f, 0x70, 0x65, 0x6e, 0x54, 0x69, 0x6d, 0x65, 0x73, 0x74, 0x61, 0x6d, 0x70, 0x73, 0x00, 0x00, 0x50, 0x72,
  0x6f, 0x6f, 0x66, 0x00, 0xbf, 0x89, 0xe2, 0xe8, 0x84, 0xe8, 0x92, 0x94,
]);
const VERSION = 1;
/** Precedes every item of a node except the last. */
const MORE = 0xff;
const ATTESTATION = 0x00;
/** Maximum number of messages on one path from the digest to an attestation, including both ends. */
const MAX_NESTING = 256;
/** Maximum length of a proof. A proof of an upgraded calendar has about 2 KB. */
export const MAX_OTS_BYTES = 65_536;
/**
 * Maximum number of operations and attestations in one proof. Each may cost a hash of 4 KB and the memory for its
 * result.
 */
const MAX_ITEMS = 4096;
/** Bytes of a SHA-256. Every Merkle root of Bitcoin is one. */
const MERKLE_ROOT_BYTES = 32;

/** The hash functions for the file, and the length of their digests. */
const FILE_DIGESTS = { sha256: 32, sha1: 20, ripemd160: 20 } as const;
export type OtsFileHash = keyof typeof FILE_DIGESTS;

/** A detached `.ots` file. `timestamp.message` is the digest of the stamped file. */
export interface OtsFile {
  readonly hash: OtsFileHash;
  readonly timestamp: OtsTimestamp;
}

/** An operation on a node's message, and the node of its result. */
export interface OtsBranch {
  readonly operation: OtsOperation;
  readonly next: OtsTimestamp;
}

/** The commitment by one attestation of a proof. */
export type OtsCommitment =
  /** A calendar has promised to put the digest into Bitcoin. Nothing proves that it will. */
  | { readonly kind: "pending"; readonly uri: string }
  /**
   * The digest existed before the block at `height`, if that block's root is `merkleRoot` (hex as explorers show it).
   */
  | { readonly kind: "bitcoin"; readonly height: number; readonly merkleRoot: string }
  /** An attestation that cannot be judged here; `tag` is 16 hex characters. */
  | { readonly kind: "unknown"; readonly tag: string };

/** A message with its attestations, and with the operations that lead to further messages. */
export class OtsTimestamp {
  readonly message: Uint8Array;
  /** Keyed by their bytes, so that a tree has nothing twice. */
  readonly #attestations = new Map<string, OtsAttestation>();
  readonly #branches = new Map<string, OtsBranch>();

  /** @throws CairnlogError `invalid-input` unless `message` has 1 to 4096 bytes */
  constructor(message: Uint8Array) {
    if (message.length < 1 || message.length > MAX_MESSAGE)
      throw otsError(`A message in an OpenTimestamps proof has 1 to ${MAX_MESSAGE} bytes.`);
    this.message = message;
  }

  /** In canonical order. */
  get attestations(): OtsAttestation[] {
    return [...this.#attestations.values()].sort(compareAttestations);
  }

  /** In canonical order. */
  get branches(): OtsBranch[] {
    return [...this.#branches.values()].sort((a, b) => compareOperations(a.operation, b.operation));
  }

  /** Adds an attestation, unless it is present. */
  attest(attestation: OtsAttestation): void {
    this.#attestations.set(toHex(attestationBytes(attestation)), attestation);
  }

  /**
   * The node for the result of `operation`. It is made if it does not exist.
   * @throws CairnlogError `invalid-input` if its message would be too long
   */
  branch(operation: OtsOperation): OtsTimestamp {
    const key = toHex(operationBytes(operation));
    const existing = this.#branches.get(key);
    if (existing) return existing.next;
    const next = new OtsTimestamp(applyOperation(operation, this.message));
    this.#branches.set(key, { operation, next });
    return next;
  }

  /**
   * Adds everything that `other` has about the same message. Nothing is removed.
   * @throws CairnlogError `invalid-input` if it is about another message
   */
  merge(other: OtsTimestamp): void {
    if (toHex(this.message) !== toHex(other.message)) throw otsError("The timestamps are about different messages.");
    for (const attestation of other.#attestations.values()) this.attest(attestation);
    for (const { operation, next } of other.#branches.values()) this.branch(operation).merge(next);
  }

  /** This node and all below it. */
  *nodes(): Iterable<OtsTimestamp> {
    const open: OtsTimestamp[] = [this];
    for (let node = open.pop(); node; node = open.pop()) {
      yield node;
      open.push(...node.branches.map(({ next }) => next).reverse());
    }
  }
}

/**
 * Reads a bare timestamp of `message`, which is what a calendar returns. Costs at most 4096 hashes for any bytes.
 * @throws CairnlogError `invalid-input` for bytes that are no timestamp, exceed a limit, or continue after its end
 */
export function parseOtsTimestamp(bytes: Uint8Array, message: Uint8Array): OtsTimestamp {
  const reader = readerOf(bytes);
  const timestamp = readTimestamp(reader, message);
  reader.end();
  return timestamp;
}

/**
 * Reads a detached `.ots` file. Costs at most 4096 hashes for any bytes.
 * @throws CairnlogError `invalid-input` for bytes that are no such file, exceed a limit, or continue after its end
 */
export function parseOtsFile(bytes: Uint8Array): OtsFile {
  const reader = readerOf(bytes);
  if (toHex(reader.take(MAGIC.length)) !== toHex(MAGIC)) throw otsError("The bytes are no OpenTimestamps proof.");
  const version = reader.byte();
  if (version !== VERSION) throw otsError(`OpenTimestamps proofs of version ${version} are not known.`);
  const { name: hash } = readOperation(reader, reader.byte());
  if (!isFileHash(hash)) throw otsError("The OpenTimestamps proof is about a digest that no file has.");
  const timestamp = readTimestamp(reader, reader.take(FILE_DIGESTS[hash]));
  reader.end();
  return { hash, timestamp };
}

const isFileHash = (name: string): name is OtsFileHash => Object.hasOwn(FILE_DIGESTS, name);

const readerOf = (bytes: Uint8Array): OtsReader => new OtsReader(withinSize(bytes));

function readTimestamp(reader: OtsReader, message: Uint8Array): OtsTimestamp {
  const root = new OtsTimestamp(message);
  let items = 0;
  const read = (node: OtsTimestamp, nesting: number): void => {
    if (nesting > MAX_NESTING) throw tooDeep();
    for (let isLast = false; !isLast; ) {
      if (++items > MAX_ITEMS) throw tooManyItems();
      let tag = reader.byte();
      isLast = tag !== MORE;
      if (!isLast) tag = reader.byte();
      if (tag === ATTESTATION) node.attest(readAttestation(reader));
      else read(node.branch(readOperation(reader, tag)), nesting + 1);
    }
  };
  read(root, 1);
  return root;
}

/**
 * The encoding of a bare timestamp, in canonical order. It does not contain the message.
 * @throws CairnlogError `invalid-input` for a tree with a leaf without attestation, and for one that
 *   `parseOtsTimestamp` would refuse for its size
 */
export function serialiseOtsTimestamp(timestamp: OtsTimestamp): Uint8Array {
  return withinSize(concatBytes(...timestampParts(timestamp)));
}

/**
 * The encoding of a detached `.ots` file, in canonical order.
 * @throws CairnlogError `invalid-input` as `serialiseOtsTimestamp` does, and for a digest of the wrong length
 */
export function serialiseOtsFile({ hash, timestamp }: OtsFile): Uint8Array {
  if (timestamp.message.length !== FILE_DIGESTS[hash]) throw otsError(`The message is not a digest of ${hash}.`);
  const head = [MAGIC, Uint8Array.of(VERSION), operationBytes({ name: hash }), timestamp.message];
  return withinSize(concatBytes(...head, ...timestampParts(timestamp)));
}

/** @throws CairnlogError `invalid-input` */
function withinSize(bytes: Uint8Array): Uint8Array {
  if (bytes.length > MAX_OTS_BYTES) throw otsError(`An OpenTimestamps proof has at most ${MAX_OTS_BYTES} bytes.`);
  return bytes;
}

function timestampParts(root: OtsTimestamp): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let items = 0;
  const write = (node: OtsTimestamp, nesting: number): void => {
    if (nesting > MAX_NESTING) throw tooDeep();
    const { attestations, branches } = node;
    let left = attestations.length + branches.length;
    items += left;
    if (items > MAX_ITEMS) throw tooManyItems();
    if (!left) throw otsError("A message of the timestamp has neither attestation nor operation.");
    const separator = () => Uint8Array.of(...(--left ? [MORE] : []));
    for (const attestation of attestations)
      parts.push(separator(), Uint8Array.of(ATTESTATION), attestationBytes(attestation));
    for (const { operation, next } of branches) {
      parts.push(separator(), operationBytes(operation));
      write(next, nesting + 1);
    }
  };
  write(root, 1);
  return parts;
}

const tooDeep = () => otsError(`An OpenTimestamps proof is nested at most ${MAX_NESTING} deep.`);
const tooManyItems = () => otsError(`An OpenTimestamps proof has at most ${MAX_ITEMS} operations and attestations.`);

/**
 * All commitments of a timestamp, in the order of the tree. A Bitcoin attestation of a message that cannot be a Merkle
 * root proves nothing and counts as unknown.
 */
export function otsCommitments(timestamp: OtsTimestamp): OtsCommitment[] {
  const commitments: OtsCommitment[] = [];
  for (const { message, attestations } of timestamp.nodes())
    for (const attestation of attestations) commitments.push(commitment(attestation, message));
  return commitments;
}

function commitment(attestation: OtsAttestation, message: Uint8Array): OtsCommitment {
  switch (attestation.kind) {
    case "pending":
      return attestation;
    case "unknown":
      return { kind: "unknown", tag: attestation.tag };
    case "bitcoin":
      return message.length === MERKLE_ROOT_BYTES
        ? { kind: "bitcoin", height: attestation.height, merkleRoot: toHex(Uint8Array.from(message).reverse()) }
        : { kind: "unknown", tag: toHex(attestationBytes(attestation).subarray(0, 8)) };
  }
}

// The part of an entry's anchoring proof (`ots_proof`) that can be checked offline: whether it is a proof for this
// entry, and what it commits to. No hash of the log covers the proof; only Bitcoin can confirm it.

/** Number of base64 characters for three bytes. */
const BASE64_GROUP = 4;
/** Maximum number of commitments of one kind that are listed; a proof may have thousands. */
const MAX_LISTED = 8;

/** The result for a proof: its commitments or, unless `ok`, its faults. */
export interface AnchorVerdict {
  readonly ok: boolean;
  /** Sentences. */
  readonly detail: string;
}

/**
 * Checks that `proof`, which may come from anybody, is a detached `.ots` file in base64 over exactly `entryHash` (hex).
 * Does not check whether a named block has the given Merkle root, because that needs the block. Never throws.
 */
export function checkOtsProof(proof: string, entryHash: string): AnchorVerdict {
  const bytes = proof.length <= (MAX_OTS_BYTES / 3 + 1) * BASE64_GROUP ? decodeBase64(proof) : undefined;
  if (bytes === undefined) return { ok: false, detail: "The anchoring proof is not strict base64 of a proof's size." };
  let file: OtsFile;
  try {
    file = parseOtsFile(bytes);
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return { ok: false, detail: error.message };
  }
  if (file.hash !== "sha256" || toHex(file.timestamp.message) !== entryHash)
    return { ok: false, detail: "The anchoring proof is about another digest than the entry's hash." };
  return { ok: true, detail: describe(otsCommitments(file.timestamp)) };
}

function describe(commitments: readonly OtsCommitment[]): string {
  const texts = (pick: (commitment: OtsCommitment) => string[]) => listed([...new Set(commitments.flatMap(pick))]);
  const blocks = texts((each) =>
    each.kind === "bitcoin" ? [`block ${each.height}, if its Merkle root is ${each.merkleRoot}`] : [],
  );
  const calendars = texts((each) => (each.kind === "pending" ? [each.uri] : []));
  const unknown = texts((each) => (each.kind === "unknown" ? [each.tag] : []));
  return [
    "The anchoring proof is for the entry's hash.",
    blocks
      ? `It shows that the entry is older than Bitcoin ${blocks}: compare that with the block, for it cannot be checked offline.`
      : "It names no Bitcoin block, so it proves nothing yet.",
    ...(calendars ? [`Promised by calendars: ${calendars}.`] : []),
    ...(unknown ? [`Attestations of unknown kinds: ${unknown}.`] : []),
  ].join(" ");
}

function listed(texts: readonly string[]): string {
  const more = texts.length - MAX_LISTED;
  return [...texts.slice(0, MAX_LISTED), ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}
