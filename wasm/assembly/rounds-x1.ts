// SHA-256 compression (FIPS 180-4, 6.2.2) of one message; state and schedule are 32-bit words in memory.
// Rounds come in unrolled eights, after which every variable is back in its place.
import { K } from "./constants";

// @ts-ignore: decorator
@inline export function sigma0(x: u32): u32 { return rotr(x, 7) ^ rotr(x, 18) ^ (x >> 3); }
// @ts-ignore: decorator
@inline export function sigma1(x: u32): u32 { return rotr(x, 17) ^ rotr(x, 19) ^ (x >> 10); }
// @ts-ignore: decorator
@inline function bigSigma0(x: u32): u32 { return rotr(x, 2) ^ rotr(x, 13) ^ rotr(x, 22); }
// @ts-ignore: decorator
@inline function bigSigma1(x: u32): u32 { return rotr(x, 6) ^ rotr(x, 11) ^ rotr(x, 25); }
// @ts-ignore: decorator
@inline function ch(x: u32, y: u32, z: u32): u32 { return z ^ (x & (y ^ z)); }
// @ts-ignore: decorator
@inline function maj(x: u32, y: u32, z: u32): u32 { return (x & y) ^ (z & (x ^ y)); }
// @ts-ignore: decorator
@inline function word(base: usize, i: usize): u32 { return load<u32>(base + (i << 2)); }

/** K + W of round i. */
// @ts-ignore: decorator
@inline function scheduled(w: usize, k: usize, i: usize): u32 { return word(w, i) + word(k, i); }

/** Makes word i + 16 of the schedule. */
// @ts-ignore: decorator
@inline function schedule(w: usize, i: usize): void {
  store<u32>(w + (i << 2), word(w, i) + sigma0(word(w, i + 1)) + word(w, i + 9) + sigma1(word(w, i + 14)), 64);
}

// @ts-ignore: decorator
@inline function addTo(state: usize, a: u32, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32, h: u32): void {
  store<u32>(state, word(state, 0) + a, 0);
  store<u32>(state, word(state, 1) + b, 4);
  store<u32>(state, word(state, 2) + c, 8);
  store<u32>(state, word(state, 3) + d, 12);
  store<u32>(state, word(state, 4) + e, 16);
  store<u32>(state, word(state, 5) + f, 20);
  store<u32>(state, word(state, 6) + g, 24);
  store<u32>(state, word(state, 7) + h, 28);
}

/** Compresses the sixteen words at `w` into `state`; the schedule grows behind them, to 64 words in all. */
export function compress(state: usize, w: usize): void {
  let a = word(state, 0), b = word(state, 1), c = word(state, 2), d = word(state, 3);
  let e = word(state, 4), f = word(state, 5), g = word(state, 6), h = word(state, 7);
  let k = K;
  for (const end = w + 48 * 4; w < end; w += 8 * 4) {
    h += scheduled(w, k, 0) + ch(e, f, g) + bigSigma1(e); d += h; h += maj(a, b, c) + bigSigma0(a);
    schedule(w, 0);
    g += scheduled(w, k, 1) + ch(d, e, f) + bigSigma1(d); c += g; g += maj(h, a, b) + bigSigma0(h);
    schedule(w, 1);
    f += scheduled(w, k, 2) + ch(c, d, e) + bigSigma1(c); b += f; f += maj(g, h, a) + bigSigma0(g);
    schedule(w, 2);
    e += scheduled(w, k, 3) + ch(b, c, d) + bigSigma1(b); a += e; e += maj(f, g, h) + bigSigma0(f);
    schedule(w, 3);
    d += scheduled(w, k, 4) + ch(a, b, c) + bigSigma1(a); h += d; d += maj(e, f, g) + bigSigma0(e);
    schedule(w, 4);
    c += scheduled(w, k, 5) + ch(h, a, b) + bigSigma1(h); g += c; c += maj(d, e, f) + bigSigma0(d);
    schedule(w, 5);
    b += scheduled(w, k, 6) + ch(g, h, a) + bigSigma1(g); f += b; b += maj(c, d, e) + bigSigma0(c);
    schedule(w, 6);
    a += scheduled(w, k, 7) + ch(f, g, h) + bigSigma1(f); e += a; a += maj(b, c, d) + bigSigma0(b);
    schedule(w, 7);
    k += 8 * 4;
  }
  for (const end = w + 16 * 4; w < end; w += 8 * 4) {
    h += scheduled(w, k, 0) + ch(e, f, g) + bigSigma1(e); d += h; h += maj(a, b, c) + bigSigma0(a);
    g += scheduled(w, k, 1) + ch(d, e, f) + bigSigma1(d); c += g; g += maj(h, a, b) + bigSigma0(h);
    f += scheduled(w, k, 2) + ch(c, d, e) + bigSigma1(c); b += f; f += maj(g, h, a) + bigSigma0(g);
    e += scheduled(w, k, 3) + ch(b, c, d) + bigSigma1(b); a += e; e += maj(f, g, h) + bigSigma0(f);
    d += scheduled(w, k, 4) + ch(a, b, c) + bigSigma1(a); h += d; d += maj(e, f, g) + bigSigma0(e);
    c += scheduled(w, k, 5) + ch(h, a, b) + bigSigma1(h); g += c; c += maj(d, e, f) + bigSigma0(d);
    b += scheduled(w, k, 6) + ch(g, h, a) + bigSigma1(g); f += b; b += maj(c, d, e) + bigSigma0(c);
    a += scheduled(w, k, 7) + ch(f, g, h) + bigSigma1(f); e += a; a += maj(b, c, d) + bigSigma0(b);
    k += 8 * 4;
  }
  addTo(state, a, b, c, d, e, f, g, h);
}

/** Compresses the block whose schedule, round constants added, is at `kw`: 64 words. */
export function compressPrepared(state: usize, kw: usize): void {
  let a = word(state, 0), b = word(state, 1), c = word(state, 2), d = word(state, 3);
  let e = word(state, 4), f = word(state, 5), g = word(state, 6), h = word(state, 7);
  for (const end = kw + 64 * 4; kw < end; kw += 8 * 4) {
    h += word(kw, 0) + ch(e, f, g) + bigSigma1(e); d += h; h += maj(a, b, c) + bigSigma0(a);
    g += word(kw, 1) + ch(d, e, f) + bigSigma1(d); c += g; g += maj(h, a, b) + bigSigma0(h);
    f += word(kw, 2) + ch(c, d, e) + bigSigma1(c); b += f; f += maj(g, h, a) + bigSigma0(g);
    e += word(kw, 3) + ch(b, c, d) + bigSigma1(b); a += e; e += maj(f, g, h) + bigSigma0(f);
    d += word(kw, 4) + ch(a, b, c) + bigSigma1(a); h += d; d += maj(e, f, g) + bigSigma0(e);
    c += word(kw, 5) + ch(h, a, b) + bigSigma1(h); g += c; c += maj(d, e, f) + bigSigma0(d);
    b += word(kw, 6) + ch(g, h, a) + bigSigma1(g); f += b; b += maj(c, d, e) + bigSigma0(c);
    a += word(kw, 7) + ch(f, g, h) + bigSigma1(f); e += a; a += maj(b, c, d) + bigSigma0(b);
  }
  addTo(state, a, b, c, d, e, f, g, h);
}
