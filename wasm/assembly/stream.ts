// Plain SHA-256 of any bytes. The state of a hash in progress belongs to its JavaScript object, which puts it into
// STREAM before a call and takes it out afterwards; so any number of them may be in progress.
import { INITIAL } from "./constants";
import { writeDigest } from "./hash-x1";
import { INPUT, OUTPUT } from "./layout";
import { compress } from "./rounds-x1";

/** The eight state words of the current hash. */
export const STREAM: usize = memory.data(32, 16);
const WORDS: usize = memory.data(256, 16);

/** Begins a new hash in STREAM. */
export function restart(): void {
  memory.copy(STREAM, INITIAL, 32);
}

/** Takes `blocks` whole blocks from INPUT. */
export function absorb(blocks: i32): void {
  for (let from = INPUT; blocks > 0; blocks--, from += 64) {
    for (let i: usize = 0; i < 64; i += 4) store<u32>(WORDS + i, bswap(load<u32>(from + i)));
    compress(STREAM, WORDS);
  }
}

/**
 * Takes the last `length` bytes, in INPUT, of a message of `total` bytes, pads them, and writes the digest to OUTPUT.
 */
export function finish(length: i32, total: f64): void {
  const blocks = (length + 72) >> 6;
  const end = INPUT + (<usize>blocks << 6);
  memory.fill(INPUT + length, 0, end - INPUT - length);
  store<u8>(INPUT + length, 0x80);
  store<u64>(end - 8, bswap(<u64>total << 3));
  absorb(blocks);
  writeDigest(STREAM, OUTPUT);
}
