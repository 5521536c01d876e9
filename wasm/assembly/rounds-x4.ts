// SHA-256 compression (FIPS 180-4, 6.2.2) of independent messages, one in each 32-bit lane of a vector: a group of
// four, or two groups in turns. First a block's whole schedule, then its rounds.
//
// Two groups fill the vector units: a round uses the fewest instructions, 34, regardless of their latencies. One
// group waits for its own results: its rounds are in 36, but the next e comes sooner.
//
// What was found by measuring (AMD Zen 3 at 3.24 GHz, V8 11.3; fastest of many, ns a node of version 1, two groups):
// - 214. A node is 2230 vector instructions, 50 of them to expand its digits. Four a cycle are the most, of which two
//   may be shifts: 172. In the rounds 3.5 are reached, in the schedule, 45 % shifts, 3.1; independent instructions in
//   these proportions reach 3.5 to 4, as their order happens to suit the machine.
// - Rounds that make the schedule as they go: 224, against 218. A word of the schedule in a local until the next but one
//   needs it: 223, against 233, as it waits for its own way through memory.
// - The three rotations of a big sigma as one chain, as V8 then puts an xor between two shifts: 214, and as a tree 220.
//   Maj as below: 2 less than by bitselect. T1 summed once for both e and a: 3 less.
// - In one group it is the other way round: 980 ns four nodes, against 1035.
// - Working variables are in memory, in slots that take new values in place, and a, b, e, f in locals too. Only a and e
//   in locals: 2 more. All of them (measured on Zen 5, without the above): 182 against 172, as V8 spills them in bulk.
// - A ninth message in plain 32-bit arithmetic, a round of it after two of the vectors': 280 ns for its rounds alone.
//   Both sigmas of a word at once, shifts shared: 4 more. Left shifts by multiplication, on other units: 43 more.
import { INITIAL, K } from "./constants";

/** Bytes of a group: its eight state words, its 64 schedule words. */
const STATE_BYTES: usize = 8 * 16;
export const SCHEDULE_BYTES: usize = 64 * 16;

/** The hash values of the two groups, and their working variables a … h, which are the same when a block begins. */
const STATE: usize = memory.data(2 * 8 * 16, 16);
const SLOTS: usize = memory.data(2 * 8 * 16, 16);

// @ts-ignore: decorator
@inline function add(x: v128, y: v128): v128 { return i32x4.add(x, y); }
// @ts-ignore: decorator
@inline function right(x: v128, n: i32): v128 { return i32x4.shr_u(x, n); }
// @ts-ignore: decorator
@inline function left(x: v128, n: i32): v128 { return i32x4.shl(x, n); }
// @ts-ignore: decorator
@inline function xor3(x: v128, y: v128, z: v128): v128 { return v128.xor(v128.xor(x, y), z); }
// @ts-ignore: decorator
@inline function rotate(x: v128, n: i32): v128 { return v128.xor(right(x, n), left(x, 32 - n)); }
// @ts-ignore: decorator
@inline function sigma0(x: v128): v128 { return xor3(rotate(x, 7), rotate(x, 18), right(x, 3)); }
// @ts-ignore: decorator
@inline function sigma1(x: v128): v128 { return xor3(rotate(x, 17), rotate(x, 19), right(x, 10)); }
// @ts-ignore: decorator
@inline function bigSigma0(x: v128): v128 { return xor3(rotate(x, 2), rotate(x, 13), rotate(x, 22)); }
// @ts-ignore: decorator
@inline function bigSigma1(x: v128): v128 { return xor3(rotate(x, 6), rotate(x, 11), rotate(x, 25)); }
/** Three rotations and their xor. */
// @ts-ignore: decorator
@inline function chain(x: v128, l: i32, m: i32, n: i32): v128 {
  return xor3(xor3(rotate(x, l), right(x, m), left(x, 32 - m)), right(x, n), left(x, 32 - n));
}
// @ts-ignore: decorator
@inline function bigSigma0Chain(x: v128): v128 { return chain(x, 2, 13, 22); }
// @ts-ignore: decorator
@inline function bigSigma1Chain(x: v128): v128 { return chain(x, 6, 11, 25); }
// @ts-ignore: decorator
@inline function at(base: usize, i: usize): v128 { return v128.load(base + (i << 4)); }
// @ts-ignore: decorator
@inline function set(base: usize, i: usize, x: v128): void { v128.store(base + (i << 4), x); }

// @ts-ignore: decorator
@inline function addConstant(w: usize, k: usize, i: usize): void {
  set(w, i, add(at(w, i), v128.load32_splat(k + (i << 2))));
}

/**
 * Makes word i + 16 of the schedule, given word i + 14. Word i is not needed afterwards, so its round constant is
 * added.
 */
// @ts-ignore: decorator
@inline function schedule(w: usize, k: usize, i: usize, recent: v128): v128 {
  const next = add(add(add(at(w, i), sigma0(at(w, i + 1))), at(w, i + 9)), sigma1(recent));
  set(w, i + 16, next);
  addConstant(w, k, i);
  return next;
}

/** Makes a group's schedule, round constants added, of the sixteen words at `w`. */
function expandSchedule(w: usize): void {
  let x = at(w, 14), y = at(w, 15), k = K;
  for (const end = w + 48 * 16; w < end; w += 8 * 16) {
    x = schedule(w, k, 0, x); y = schedule(w, k, 1, y);
    x = schedule(w, k, 2, x); y = schedule(w, k, 3, y);
    x = schedule(w, k, 4, x); y = schedule(w, k, 5, y);
    x = schedule(w, k, 6, x); y = schedule(w, k, 7, y);
    k += 8 * 4;
  }
  for (let i: usize = 0; i < 16; i++) addConstant(w, k, i);
}

/** h + K + W + Ch(e, f, g): the part of the sum that does not need bigSigma1(e). */
// @ts-ignore: decorator
@inline function early(v: usize, h: usize, g: usize, kw: v128, e: v128, f: v128): v128 {
  const gs = at(v, g);
  return add(add(at(v, h), kw), v128.xor(gs, v128.and(e, v128.xor(f, gs))));
}

/** The next e, which takes the slot of d. */
// @ts-ignore: decorator
@inline function nextE(v: usize, d: usize, t: v128): v128 {
  const next = add(at(v, d), t);
  set(v, d, next);
  return next;
}

/** The next a, which takes the slot of h. Maj(a, b, c) is b, but its other bits where b differs from both a and c. */
// @ts-ignore: decorator
@inline function nextA(v: usize, h: usize, t: v128, a: v128, b: v128, differs: v128): v128 {
  const next = add(t, add(v128.xor(b, differs), bigSigma0Chain(a)));
  set(v, h, next);
  return next;
}

/** `nextE` for one group. */
// @ts-ignore: decorator
@inline function nextEOfOne(v: usize, d: usize, t: v128, s: v128): v128 {
  const next = add(add(at(v, d), t), s);
  set(v, d, next);
  return next;
}

/** `nextA` for one group. Maj(a, b, c) is c where a and b differ, and b where they agree. */
// @ts-ignore: decorator
@inline function nextAOfOne(v: usize, h: usize, c: usize, t: v128, s: v128, a: v128, b: v128): v128 {
  const next = add(add(add(t, s), v128.bitselect(at(v, c), b, v128.xor(a, b))), bigSigma0(a));
  set(v, h, next);
  return next;
}

// Rounds come in unrolled eights, after which every variable is back in its place.

/** The rounds of one group, K + W given. */
function roundsOfOne(kw: usize): void {
  const v = SLOTS;
  let a = at(v, 0), b = at(v, 1), e = at(v, 4), f = at(v, 5), t: v128, s: v128;
  for (const end = kw + SCHEDULE_BYTES; kw < end; kw += 8 * 16) {
    t = early(v, 7, 6, at(kw, 0), e, f); s = bigSigma1(e);
    f = nextEOfOne(v, 3, t, s); b = nextAOfOne(v, 7, 2, t, s, a, b);
    t = early(v, 6, 5, at(kw, 1), f, e); s = bigSigma1(f);
    e = nextEOfOne(v, 2, t, s); a = nextAOfOne(v, 6, 1, t, s, b, a);
    t = early(v, 5, 4, at(kw, 2), e, f); s = bigSigma1(e);
    f = nextEOfOne(v, 1, t, s); b = nextAOfOne(v, 5, 0, t, s, a, b);
    t = early(v, 4, 3, at(kw, 3), f, e); s = bigSigma1(f);
    e = nextEOfOne(v, 0, t, s); a = nextAOfOne(v, 4, 7, t, s, b, a);
    t = early(v, 3, 2, at(kw, 4), e, f); s = bigSigma1(e);
    f = nextEOfOne(v, 7, t, s); b = nextAOfOne(v, 3, 6, t, s, a, b);
    t = early(v, 2, 1, at(kw, 5), f, e); s = bigSigma1(f);
    e = nextEOfOne(v, 6, t, s); a = nextAOfOne(v, 2, 5, t, s, b, a);
    t = early(v, 1, 0, at(kw, 6), e, f); s = bigSigma1(e);
    f = nextEOfOne(v, 5, t, s); b = nextAOfOne(v, 1, 4, t, s, a, b);
    t = early(v, 0, 7, at(kw, 7), f, e); s = bigSigma1(f);
    e = nextEOfOne(v, 4, t, s); a = nextAOfOne(v, 0, 3, t, s, b, a);
  }
}

/** The rounds of two groups, alternating, K + W given. */
function roundsOfTwo(kw: usize, kx: usize): void {
  const v = SLOTS, x = SLOTS + STATE_BYTES;
  let a = at(v, 0), b = at(v, 1), e = at(v, 4), f = at(v, 5), t: v128, ab: v128, bc = v128.xor(b, at(v, 2));
  let ax = at(x, 0), bx = at(x, 1), ex = at(x, 4), fx = at(x, 5), abx: v128, bcx = v128.xor(bx, at(x, 2));
  for (const end = kw + SCHEDULE_BYTES; kw < end; kw += 8 * 16) {
    t = add(early(v, 7, 6, at(kw, 0), e, f), bigSigma1Chain(e)); f = nextE(v, 3, t);
    ab = v128.xor(a, b); b = nextA(v, 7, t, a, b, v128.and(ab, bc));
    t = add(early(x, 7, 6, at(kx, 0), ex, fx), bigSigma1Chain(ex)); fx = nextE(x, 3, t);
    abx = v128.xor(ax, bx); bx = nextA(x, 7, t, ax, bx, v128.and(abx, bcx));
    t = add(early(v, 6, 5, at(kw, 1), f, e), bigSigma1Chain(f)); e = nextE(v, 2, t);
    bc = v128.xor(b, a); a = nextA(v, 6, t, b, a, v128.and(bc, ab));
    t = add(early(x, 6, 5, at(kx, 1), fx, ex), bigSigma1Chain(fx)); ex = nextE(x, 2, t);
    bcx = v128.xor(bx, ax); ax = nextA(x, 6, t, bx, ax, v128.and(bcx, abx));
    t = add(early(v, 5, 4, at(kw, 2), e, f), bigSigma1Chain(e)); f = nextE(v, 1, t);
    ab = v128.xor(a, b); b = nextA(v, 5, t, a, b, v128.and(ab, bc));
    t = add(early(x, 5, 4, at(kx, 2), ex, fx), bigSigma1Chain(ex)); fx = nextE(x, 1, t);
    abx = v128.xor(ax, bx); bx = nextA(x, 5, t, ax, bx, v128.and(abx, bcx));
    t = add(early(v, 4, 3, at(kw, 3), f, e), bigSigma1Chain(f)); e = nextE(v, 0, t);
    bc = v128.xor(b, a); a = nextA(v, 4, t, b, a, v128.and(bc, ab));
    t = add(early(x, 4, 3, at(kx, 3), fx, ex), bigSigma1Chain(fx)); ex = nextE(x, 0, t);
    bcx = v128.xor(bx, ax); ax = nextA(x, 4, t, bx, ax, v128.and(bcx, abx));
    t = add(early(v, 3, 2, at(kw, 4), e, f), bigSigma1Chain(e)); f = nextE(v, 7, t);
    ab = v128.xor(a, b); b = nextA(v, 3, t, a, b, v128.and(ab, bc));
    t = add(early(x, 3, 2, at(kx, 4), ex, fx), bigSigma1Chain(ex)); fx = nextE(x, 7, t);
    abx = v128.xor(ax, bx); bx = nextA(x, 3, t, ax, bx, v128.and(abx, bcx));
    t = add(early(v, 2, 1, at(kw, 5), f, e), bigSigma1Chain(f)); e = nextE(v, 6, t);
    bc = v128.xor(b, a); a = nextA(v, 2, t, b, a, v128.and(bc, ab));
    t = add(early(x, 2, 1, at(kx, 5), fx, ex), bigSigma1Chain(fx)); ex = nextE(x, 6, t);
    bcx = v128.xor(bx, ax); ax = nextA(x, 2, t, bx, ax, v128.and(bcx, abx));
    t = add(early(v, 1, 0, at(kw, 6), e, f), bigSigma1Chain(e)); f = nextE(v, 5, t);
    ab = v128.xor(a, b); b = nextA(v, 1, t, a, b, v128.and(ab, bc));
    t = add(early(x, 1, 0, at(kx, 6), ex, fx), bigSigma1Chain(ex)); fx = nextE(x, 5, t);
    abx = v128.xor(ax, bx); bx = nextA(x, 1, t, ax, bx, v128.and(abx, bcx));
    t = add(early(v, 0, 7, at(kw, 7), f, e), bigSigma1Chain(f)); e = nextE(v, 4, t);
    bc = v128.xor(b, a); a = nextA(v, 0, t, b, a, v128.and(bc, ab));
    t = add(early(x, 0, 7, at(kx, 7), fx, ex), bigSigma1Chain(fx)); ex = nextE(x, 4, t);
    bcx = v128.xor(bx, ax); ax = nextA(x, 0, t, bx, ax, v128.and(bcx, abx));
    kx += 8 * 16;
  }
}

/** Begins the hashes of both groups. */
export function begin(): void {
  for (let i: usize = 0; i < 16; i++) {
    const word = v128.load32_splat(INITIAL + ((i & 7) << 2));
    set(STATE, i, word);
    set(SLOTS, i, word);
  }
}

/** A word of the hash values of a group. */
// @ts-ignore: decorator
@inline export function stateWord(group: usize, i: usize): v128 { return at(STATE + group * STATE_BYTES, i); }

/**
 * Compresses a block of one or two groups. The sixteen words at `w` (and, for the second group, SCHEDULE_BYTES further)
 * are the beginning of the schedule, which grows behind them.
 */
export function compress(groups: usize, w: usize): void {
  for (let g: usize = 0; g < groups; g++) expandSchedule(w + g * SCHEDULE_BYTES);
  compressPrepared(groups, w, w + SCHEDULE_BYTES);
}

/** Like `compress`, for blocks whose schedules, round constants added, are at `kw` and, for the second group, `kx`. */
export function compressPrepared(groups: usize, kw: usize, kx: usize): void {
  if (groups == 2) roundsOfTwo(kw, kx);
  else roundsOfOne(kw);
  for (let i: usize = 0; i < 16; i++) {
    const word = add(at(STATE, i), at(SLOTS, i));
    set(STATE, i, word);
    set(SLOTS, i, word);
  }
}
