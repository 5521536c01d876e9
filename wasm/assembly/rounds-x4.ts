// SHA-256 compression (FIPS 180-4, 6.2.2) of independent messages, one in each 32-bit lane of a vector: a group of
// four, or two groups.
//
// What was found by measuring (AMD Zen 5, V8 11.3; ns a node of version 1: two blocks and the padding, one group):
// - All of a … h in locals, as one would write it: 182; V8 delays the a-chain and spills what it then holds in bulk.
//   Only a, b, e, f in locals and all eight in memory, in slots that take new values in place: 172.
// - The schedule in locals too: 196 to 460, as registers happen to fall; all 64 rounds unrolled as well: 255. So the
//   schedule is in memory and rounds come in unrolled eights, after which every variable is back in its place.
// - Vector instructions take two cycles, so the way from e to the next e is what a round without a schedule waits for.
//   Summing the rest before bigSigma1(e) is there: 172, not 188. Two groups in turns in those rounds: 163, against 177
//   in the same run. Two groups in turns in the rounds that make the schedule as well: 180 against 172.
import { K } from "./constants";

/** Bytes of a group: its eight state words, its 64 schedule words. */
export const STATE_BYTES: usize = 8 * 16;
export const SCHEDULE_BYTES: usize = 64 * 16;

/** The working variables a … h of two groups. */
const SLOTS: usize = memory.data(2 * 8 * 16, 16);

// @ts-ignore: decorator
@inline function add(x: v128, y: v128): v128 { return i32x4.add(x, y); }
// @ts-ignore: decorator
@inline function xor3(x: v128, y: v128, z: v128): v128 { return v128.xor(v128.xor(x, y), z); }
// @ts-ignore: decorator
@inline function rotate(x: v128, n: i32): v128 { return v128.xor(i32x4.shr_u(x, n), i32x4.shl(x, 32 - n)); }
// @ts-ignore: decorator
@inline function bigSigma0(x: v128): v128 { return xor3(rotate(x, 2), rotate(x, 13), rotate(x, 22)); }
// @ts-ignore: decorator
@inline function bigSigma1(x: v128): v128 { return xor3(rotate(x, 6), rotate(x, 11), rotate(x, 25)); }
// @ts-ignore: decorator
@inline function sigma0(x: v128): v128 { return xor3(rotate(x, 7), rotate(x, 18), i32x4.shr_u(x, 3)); }
// @ts-ignore: decorator
@inline function sigma1(x: v128): v128 { return xor3(rotate(x, 17), rotate(x, 19), i32x4.shr_u(x, 10)); }
// @ts-ignore: decorator
@inline function at(base: usize, i: usize): v128 { return v128.load(base + (i << 4)); }

/** h + K + W + Ch(e, f, g): what a round can sum before bigSigma1(e) is there. */
// @ts-ignore: decorator
@inline function early(v: usize, h: usize, g: usize, kw: v128, e: v128, f: v128): v128 {
  const gs = at(v, g);
  return add(add(at(v, h), kw), v128.xor(gs, v128.and(e, v128.xor(f, gs))));
}

/** The next e, which takes the slot of d. */
// @ts-ignore: decorator
@inline function nextE(v: usize, d: usize, t: v128, s: v128): v128 {
  const next = add(add(at(v, d), t), s);
  v128.store(v + (d << 4), next);
  return next;
}

/** The next a, which takes the slot of h. Maj(a, b, c) is c where a and b differ and b where they agree. */
// @ts-ignore: decorator
@inline function nextA(v: usize, h: usize, c: usize, t: v128, s: v128, a: v128, b: v128): v128 {
  const next = add(add(add(t, s), v128.bitselect(at(v, c), b, v128.xor(a, b))), bigSigma0(a));
  v128.store(v + (h << 4), next);
  return next;
}

/** K + W of round i. */
// @ts-ignore: decorator
@inline function scheduled(w: usize, k: usize, i: usize): v128 {
  return add(at(w, i), v128.load32_splat(k + (i << 2)));
}

/** Makes word i + 16 of the schedule. */
// @ts-ignore: decorator
@inline function schedule(w: usize, i: usize): void {
  v128.store(w + (i << 4), add(add(at(w, i), sigma0(at(w, i + 1))), add(at(w, i + 9), sigma1(at(w, i + 14)))), 256);
}

/** The first 48 rounds of one group, which make the other 48 words of its schedule. */
function roundsWithSchedule(v: usize, w: usize): void {
  let a = at(v, 0), b = at(v, 1), e = at(v, 4), f = at(v, 5), t: v128, s: v128;
  let k = K;
  for (const end = w + 48 * 16; w < end; w += 8 * 16) {
    schedule(w, 0);
    t = early(v, 7, 6, scheduled(w, k, 0), e, f); s = bigSigma1(e);
    f = nextE(v, 3, t, s); b = nextA(v, 7, 2, t, s, a, b);
    schedule(w, 1);
    t = early(v, 6, 5, scheduled(w, k, 1), f, e); s = bigSigma1(f);
    e = nextE(v, 2, t, s); a = nextA(v, 6, 1, t, s, b, a);
    schedule(w, 2);
    t = early(v, 5, 4, scheduled(w, k, 2), e, f); s = bigSigma1(e);
    f = nextE(v, 1, t, s); b = nextA(v, 5, 0, t, s, a, b);
    schedule(w, 3);
    t = early(v, 4, 3, scheduled(w, k, 3), f, e); s = bigSigma1(f);
    e = nextE(v, 0, t, s); a = nextA(v, 4, 7, t, s, b, a);
    schedule(w, 4);
    t = early(v, 3, 2, scheduled(w, k, 4), e, f); s = bigSigma1(e);
    f = nextE(v, 7, t, s); b = nextA(v, 3, 6, t, s, a, b);
    schedule(w, 5);
    t = early(v, 2, 1, scheduled(w, k, 5), f, e); s = bigSigma1(f);
    e = nextE(v, 6, t, s); a = nextA(v, 2, 5, t, s, b, a);
    schedule(w, 6);
    t = early(v, 1, 0, scheduled(w, k, 6), e, f); s = bigSigma1(e);
    f = nextE(v, 5, t, s); b = nextA(v, 1, 4, t, s, a, b);
    schedule(w, 7);
    t = early(v, 0, 7, scheduled(w, k, 7), f, e); s = bigSigma1(f);
    e = nextE(v, 4, t, s); a = nextA(v, 0, 3, t, s, b, a);
    k += 8 * 4;
  }
}

/** `rounds` rounds of one group, K + W given. */
function roundsOfOne(rounds: usize, kw: usize): void {
  const v = SLOTS;
  let a = at(v, 0), b = at(v, 1), e = at(v, 4), f = at(v, 5), t: v128, s: v128;
  for (const end = kw + (rounds << 4); kw < end; kw += 8 * 16) {
    t = early(v, 7, 6, at(kw, 0), e, f); s = bigSigma1(e);
    f = nextE(v, 3, t, s); b = nextA(v, 7, 2, t, s, a, b);
    t = early(v, 6, 5, at(kw, 1), f, e); s = bigSigma1(f);
    e = nextE(v, 2, t, s); a = nextA(v, 6, 1, t, s, b, a);
    t = early(v, 5, 4, at(kw, 2), e, f); s = bigSigma1(e);
    f = nextE(v, 1, t, s); b = nextA(v, 5, 0, t, s, a, b);
    t = early(v, 4, 3, at(kw, 3), f, e); s = bigSigma1(f);
    e = nextE(v, 0, t, s); a = nextA(v, 4, 7, t, s, b, a);
    t = early(v, 3, 2, at(kw, 4), e, f); s = bigSigma1(e);
    f = nextE(v, 7, t, s); b = nextA(v, 3, 6, t, s, a, b);
    t = early(v, 2, 1, at(kw, 5), f, e); s = bigSigma1(f);
    e = nextE(v, 6, t, s); a = nextA(v, 2, 5, t, s, b, a);
    t = early(v, 1, 0, at(kw, 6), e, f); s = bigSigma1(e);
    f = nextE(v, 5, t, s); b = nextA(v, 1, 4, t, s, a, b);
    t = early(v, 0, 7, at(kw, 7), f, e); s = bigSigma1(f);
    e = nextE(v, 4, t, s); a = nextA(v, 0, 3, t, s, b, a);
  }
}

/** `rounds` rounds of two groups in turns, K + W given. */
function roundsOfTwo(rounds: usize, kw: usize, kx: usize): void {
  const v = SLOTS, x = SLOTS + STATE_BYTES;
  let a = at(v, 0), b = at(v, 1), e = at(v, 4), f = at(v, 5), t: v128, s: v128;
  let ax = at(x, 0), bx = at(x, 1), ex = at(x, 4), fx = at(x, 5);
  for (const end = kw + (rounds << 4); kw < end; kw += 8 * 16) {
    t = early(v, 7, 6, at(kw, 0), e, f); s = bigSigma1(e);
    f = nextE(v, 3, t, s); b = nextA(v, 7, 2, t, s, a, b);
    t = early(x, 7, 6, at(kx, 0), ex, fx); s = bigSigma1(ex);
    fx = nextE(x, 3, t, s); bx = nextA(x, 7, 2, t, s, ax, bx);
    t = early(v, 6, 5, at(kw, 1), f, e); s = bigSigma1(f);
    e = nextE(v, 2, t, s); a = nextA(v, 6, 1, t, s, b, a);
    t = early(x, 6, 5, at(kx, 1), fx, ex); s = bigSigma1(fx);
    ex = nextE(x, 2, t, s); ax = nextA(x, 6, 1, t, s, bx, ax);
    t = early(v, 5, 4, at(kw, 2), e, f); s = bigSigma1(e);
    f = nextE(v, 1, t, s); b = nextA(v, 5, 0, t, s, a, b);
    t = early(x, 5, 4, at(kx, 2), ex, fx); s = bigSigma1(ex);
    fx = nextE(x, 1, t, s); bx = nextA(x, 5, 0, t, s, ax, bx);
    t = early(v, 4, 3, at(kw, 3), f, e); s = bigSigma1(f);
    e = nextE(v, 0, t, s); a = nextA(v, 4, 7, t, s, b, a);
    t = early(x, 4, 3, at(kx, 3), fx, ex); s = bigSigma1(fx);
    ex = nextE(x, 0, t, s); ax = nextA(x, 4, 7, t, s, bx, ax);
    t = early(v, 3, 2, at(kw, 4), e, f); s = bigSigma1(e);
    f = nextE(v, 7, t, s); b = nextA(v, 3, 6, t, s, a, b);
    t = early(x, 3, 2, at(kx, 4), ex, fx); s = bigSigma1(ex);
    fx = nextE(x, 7, t, s); bx = nextA(x, 3, 6, t, s, ax, bx);
    t = early(v, 2, 1, at(kw, 5), f, e); s = bigSigma1(f);
    e = nextE(v, 6, t, s); a = nextA(v, 2, 5, t, s, b, a);
    t = early(x, 2, 1, at(kx, 5), fx, ex); s = bigSigma1(fx);
    ex = nextE(x, 6, t, s); ax = nextA(x, 2, 5, t, s, bx, ax);
    t = early(v, 1, 0, at(kw, 6), e, f); s = bigSigma1(e);
    f = nextE(v, 5, t, s); b = nextA(v, 1, 4, t, s, a, b);
    t = early(x, 1, 0, at(kx, 6), ex, fx); s = bigSigma1(ex);
    fx = nextE(x, 5, t, s); bx = nextA(x, 1, 4, t, s, ax, bx);
    t = early(v, 0, 7, at(kw, 7), f, e); s = bigSigma1(f);
    e = nextE(v, 4, t, s); a = nextA(v, 0, 3, t, s, b, a);
    t = early(x, 0, 7, at(kx, 7), fx, ex); s = bigSigma1(fx);
    ex = nextE(x, 4, t, s); ax = nextA(x, 0, 3, t, s, bx, ax);
    kx += 8 * 16;
  }
}

// @ts-ignore: decorator
@inline function begin(state: usize): void {
  for (let i: usize = 0; i < 2 * STATE_BYTES; i += 16) v128.store(SLOTS + i, v128.load(state + i));
}

// @ts-ignore: decorator
@inline function addTo(state: usize): void {
  for (let i: usize = 0; i < 16; i++) v128.store(state + (i << 4), add(at(state, i), at(SLOTS, i)));
}

/** Adds the round constants to the last 16 words of a schedule. */
// @ts-ignore: decorator
@inline function addConstants(w: usize): void {
  for (let i: usize = 48; i < 64; i++) v128.store(w + (i << 4), scheduled(w, K, i));
}

/**
 * Compresses a block of one or two groups into `state`. The sixteen words at `w` (and, for the second group,
 * SCHEDULE_BYTES further) are the beginning of the schedule, which grows behind them.
 */
export function compress(groups: usize, state: usize, w: usize): void {
  begin(state);
  roundsWithSchedule(SLOTS, w);
  addConstants(w);
  const last = w + 48 * 16;
  if (groups == 2) {
    roundsWithSchedule(SLOTS + STATE_BYTES, w + SCHEDULE_BYTES);
    addConstants(w + SCHEDULE_BYTES);
    roundsOfTwo(16, last, last + SCHEDULE_BYTES);
  } else {
    roundsOfOne(16, last);
  }
  addTo(state);
}

/** The same for blocks whose schedules, round constants added, are at `kw` and, for the second group, `kx`. */
export function compressPrepared(groups: usize, state: usize, kw: usize, kx: usize): void {
  begin(state);
  if (groups == 2) roundsOfTwo(64, kw, kx);
  else roundsOfOne(64, kw);
  addTo(state);
}
