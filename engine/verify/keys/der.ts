/**
 * A strict reader for the part of DER (ITU-T X.690 §§8, 10) that keys and signatures need. Every value has one encoding
 * here, so that no two verifiers can disagree about an encoding that a tolerant parser would accept.
 */

/** Reads DER elements from bytes that may come from an attacker; throws `RangeError` at the first deviation. */
export class DerReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The contents of the next element, which must have the given tag. A view, not a copy. */
  read(tag: number): Uint8Array {
    if (this.#byte() !== tag) throw new RangeError("unexpected DER tag");
    const length = this.#length();
    if (length > this.#bytes.length - this.#at) throw new RangeError("truncated DER element");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /**
   * The next element, an INTEGER ≥ 0 in the fewest possible bytes. Returns its magnitude, big-endian; empty for zero.
   */
  readUnsigned(): Uint8Array {
    const contents = this.read(TAG.integer);
    const [first, second] = contents;
    if (first === undefined || first > 0x7f) throw new RangeError("DER INTEGER is empty or negative");
    if (first !== 0) return contents;
    if (second !== undefined && second <= 0x7f) throw new RangeError("DER INTEGER has a superfluous zero byte");
    return contents.subarray(1);
  }

  /** @throws RangeError unless all bytes have been read. */
  end(): void {
    if (this.#at !== this.#bytes.length) throw new RangeError("bytes after the DER element");
  }

  #length(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    // Two bytes of length are enough for every accepted key, and 0x80 (indefinite) is not DER.
    const count = first - 0x80;
    if (count < 1 || count > 2) throw new RangeError("DER length out of range");
    let length = 0;
    for (let i = 0; i < count; i++) length = length * 256 + this.#byte();
    if (length < (count === 1 ? 0x80 : 0x100)) throw new RangeError("DER length is not minimal");
    return length;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new RangeError("truncated DER element");
    return byte;
  }
}

/** The universal tags used here. */
export const TAG = { integer: 0x02, bitString: 0x03, sequence: 0x30 } as const;
