/**
 * Bloom filter over terms. Nearly every submission is new, and a new submission must not cost a search in every run of
 * the log. With ten bits a term and seven probes, 0.8 % of the answers are false positives, and a million terms take
 * 1.25 MB.
 */
import { TERM_BYTES } from "./term.js";

const BITS_PER_TERM = 10;
const PROBES = 7;

export function createBloom(terms: number): Uint8Array {
  return new Uint8Array(Math.max(8, Math.ceil((terms * BITS_PER_TERM) / 8)));
}

/**
 * Where the bits of a term are, in filters of any length. The key of a term is already a hash, so two of its words give all
 * places (Kirsch and Mitzenmacher): `start`, and then each `step` bits further on.
 */
export interface Probe {
  readonly start: number;
  readonly step: number;
}

const probe = (start: number, word: number): Probe => ({ start, step: (word | 1) >>> 0 });

export const probeOf = (term: string): Probe => probe(wordOf(term, TERM_BYTES - 8), wordOf(term, TERM_BYTES - 4));

/** Adds the term of the record at offset `at` of a block. */
export function addRecordToBloom(bloom: Uint8Array, block: Buffer, at: number): void {
  const { start, step } = probe(block.readUInt32LE(at + TERM_BYTES - 8), block.readUInt32LE(at + TERM_BYTES - 4));
  const bits = bloom.length * 8;
  const stride = remainder(step, bits);
  for (let i = 0, bit = remainder(start, bits); i < PROBES; i++) {
    bloom[bit >>> 3]! |= 1 << (bit & 7);
    bit = next(bit, stride, bits);
  }
}

/**
 * False only if the term was never added. The first bits are looked at together, without a branch between them: they are
 * in parts of memory that nobody has touched for a while, and the processor waits for all of them at once. Three terms
 * in nine filters that are in no cache take 1.6 µs, and 4.3 with a branch after each bit.
 */
export function mayContain(bloom: Uint8Array, { start, step }: Probe): boolean {
  const bits = bloom.length * 8;
  const stride = remainder(step, bits);
  const first = remainder(start, bits);
  const second = next(first, stride, bits);
  let bit = next(second, stride, bits);
  let isSet = bitAt(bloom, first) & bitAt(bloom, second) & bitAt(bloom, bit);
  for (let i = 3; isSet && i < PROBES; i++) {
    bit = next(bit, stride, bits);
    isSet = bitAt(bloom, bit);
  }
  return isSet === 1;
}

const next = (bit: number, stride: number, bits: number): number => {
  const sum = bit + stride;
  return sum >= bits ? sum - bits : sum;
};

const bitAt = (bloom: Uint8Array, bit: number): number => (bloom[bit >>> 3]! >>> (bit & 7)) & 1;

/**
 * `value % bits` for a value below 2³², without the `%` of doubles: a term is added in 88 ns instead of 131. It is exact: a
 * quotient that is no integer is further from the next integer than a double is from its neighbour.
 */
const remainder = (value: number, bits: number): number => value - Math.floor(value / bits) * bits;

const wordOf = (term: string, at: number): number =>
  (term.charCodeAt(at) |
    (term.charCodeAt(at + 1) << 8) |
    (term.charCodeAt(at + 2) << 16) |
    (term.charCodeAt(at + 3) << 24)) >>>
  0;
