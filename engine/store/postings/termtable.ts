/**
 * Terms and their entries in memory: the postings of one batch, or all postings that are not in a run yet. Everything
 * is in flat arrays, which grow and are reused. As strings in a `Map`, every posting lived for thousands of appends and
 * was copied twice by the garbage collector; the collector does not scan these arrays.
 */
import { randomInt } from "node:crypto";
import { leastWhere } from "../../base/search.js";
import { isFiltered } from "../schema/schema.js";
import type { RunBuilder } from "./runs.js";
import { TERM_BYTES } from "./term.js";

/**
 * Words for the bytes of a term, big-endian; the last word holds one byte. Compared as unsigned words, they sort like
 * the term.
 */
const WORDS = 5;
/** After the words come the numbers of the term's first and last posting, and how many postings it has. */
const FIRST = WORDS;
const LAST = WORDS + 1;
const COUNT = WORDS + 2;
const STRIDE = WORDS + 3;
/** With twice as many slots as terms, a search looks at 1.5 slots on average. */
const SLOTS_PER_TERM = 2;
const FIRST_CAPACITY = 64;
/** Number of bits of an integer that a double holds exactly. */
const EXACT_BITS = 53;

/**
 * Odd, and random in each process: clients choose most of the bytes of some terms, and must not be able to make
 * thousands of terms that fall into one slot.
 */
const MULTIPLIERS = Int32Array.from({ length: WORDS }, () => randomInt(2 ** 31) * 2 + 1);

/** Writes the words of the term that begins at `from` of `text` into `into`. */
function wordsOf(text: string, from: number, into: Int32Array): void {
  for (let i = 0, at = from; i < WORDS - 1; i++, at += 4)
    into[i] =
      (text.charCodeAt(at) << 24) |
      (text.charCodeAt(at + 1) << 16) |
      (text.charCodeAt(at + 2) << 8) |
      text.charCodeAt(at + 3);
  into[WORDS - 1] = text.charCodeAt(from + TERM_BYTES - 1) << 24;
}

/** Negative if the term at `a` sorts before the term at `b`. */
function compare(as: Int32Array, a: number, bs: Int32Array, b: number): number {
  for (let i = 0; i < WORDS; i++) if (as[a + i] !== bs[b + i]) return as[a + i]! >>> 0 < bs[b + i]! >>> 0 ? -1 : 1;
  return 0;
}

const sought = new Int32Array(WORDS);

/** Term → ascending leaf indexes. */
export class TermTable {
  /** The number of a term plus one, at the first slot that was free, beginning at the slot of its hash. */
  #slots: Int32Array;
  #shift: number;
  /** `STRIDE` words for each term. */
  #terms: Int32Array;
  #termCount = 0;
  /** For each posting: its leaf index, its term, and the previous posting of the same term. */
  #indexes: Float64Array;
  #owners: Int32Array;
  #previous: Int32Array;
  #count = 0;
  /** The numbers of all terms of a kind, ascending by term, for the kinds that were asked for since the last new term. */
  readonly #sorted = new Map<number, Int32Array>();

  /**
   * @param capacity terms and postings that fit before the table grows, a power of two. Memory that is not written to is taken
   *   from no other use; to grow, all terms are entered again
   */
  constructor(capacity = FIRST_CAPACITY) {
    this.#slots = new Int32Array(SLOTS_PER_TERM * capacity);
    this.#shift = 32 - Math.log2(SLOTS_PER_TERM * capacity);
    this.#terms = new Int32Array(STRIDE * capacity);
    this.#indexes = new Float64Array(capacity);
    this.#owners = new Int32Array(capacity);
    this.#previous = new Int32Array(capacity);
  }

  /** The number of postings. */
  get count(): number {
    return this.#count;
  }

  /** Adds the entry at `index`, which must not be below any index of `term`. */
  add(term: string, index: number): void {
    wordsOf(term, 0, sought);
    this.#append(this.#enter(sought, 0), index);
  }

  /** Adds the entry at `index` under each of these terms, which stand one behind the other. */
  addEach(terms: string, index: number): void {
    for (let from = 0; from < terms.length; from += TERM_BYTES) {
      wordsOf(terms, from, sought);
      this.#append(this.#enter(sought, 0), index);
    }
  }

  /** Adds all postings of `other`. Its entries must not be below the ones in this table. */
  addAll(other: TermTable): void {
    const numbers = new Int32Array(other.#termCount);
    for (let number = 0; number < numbers.length; number++)
      numbers[number] = this.#enter(other.#terms, STRIDE * number);
    for (let posting = 0; posting < other.#count; posting++)
      this.#append(numbers[other.#owners[posting]!]!, other.#indexes[posting]!);
  }

  /** The terms of this table as words for another thread: see `addPacked`. */
  get packedWords(): number {
    return 2 + WORDS * this.#termCount + 2 * this.#count;
  }

  /**
   * Writes `packedWords` words into `into`: the number of terms and of postings, the terms, and for each posting its term's
   * number and its leaf index less `base`, which no index is below.
   */
  pack(into: Int32Array, base: number): void {
    into[0] = this.#termCount;
    into[1] = this.#count;
    let at = 2;
    for (let number = 0; number < this.#termCount; number++)
      for (let i = 0; i < WORDS; i++) into[at++] = this.#terms[STRIDE * number + i]!;
    for (let posting = 0; posting < this.#count; posting++) {
      into[at++] = this.#owners[posting]!;
      into[at++] = this.#indexes[posting]! - base;
    }
  }

  /** Adds what another table has packed with `base`. Its entries must not be below the ones in this table. */
  addPacked(words: Int32Array, base: number): void {
    const numbers = new Int32Array(words[0]!);
    let at = 2;
    for (let number = 0; number < numbers.length; number++, at += WORDS) numbers[number] = this.#enter(words, at);
    for (let posting = 0; posting < words[1]!; posting++, at += 2)
      this.#append(numbers[words[at]!]!, base + words[at + 1]!);
  }

  /** The lowest leaf index under `term`, or undefined. */
  first(term: string): number | undefined {
    const number = this.#find(term);
    return number < 0 ? undefined : this.#indexes[this.#terms[STRIDE * number + FIRST]!];
  }

  /** All leaf indexes under `term`, ascending. */
  list(term: string): number[] {
    const number = this.#find(term);
    return number < 0 ? [] : this.#list(number);
  }

  /** Every term with its leaf indexes, in order of insertion. */
  *[Symbol.iterator](): Generator<readonly [term: string, indexes: readonly number[]]> {
    for (let number = 0; number < this.#termCount; number++) {
      const bytes = Buffer.alloc(WORDS * 4);
      for (let i = 0; i < WORDS; i++) bytes.writeInt32BE(this.#terms[STRIDE * number + i]!, 4 * i);
      yield [bytes.toString("latin1", 0, TERM_BYTES), this.#list(number)];
    }
  }

  /** The number of postings with a term from `low` to `high`, which are of one kind. */
  rangeCount(low: string, high: string): number {
    let count = 0;
    for (const number of this.#between(low, high)) count += this.#terms[STRIDE * number + COUNT]!;
    return count;
  }

  /** Adds the leaf indexes of these postings to `into`, term by term. */
  readRange(low: string, high: string, into: number[]): void {
    for (const number of this.#between(low, high)) for (const index of this.#list(number)) into.push(index);
  }

  /** The numbers of the terms from `low` to `high`, ascending by term. */
  #between(low: string, high: string): Int32Array {
    const sorted = this.#sortedKind(low.charCodeAt(0));
    const bound = new Int32Array(WORDS);
    const rankOf = (term: string, least: number): number => {
      wordsOf(term, 0, bound);
      return leastWhere(0, sorted.length, (rank) => compare(this.#terms, STRIDE * sorted[rank]!, bound, 0) >= least);
    };
    return sorted.subarray(rankOf(low, 0), rankOf(high, 1));
  }

  /**
   * The numbers of the terms of a kind, ascending by term. A search asks for many ranges of a kind: they are sorted for the
   * first one, which takes about a millisecond, and kept until a term comes or goes.
   */
  #sortedKind(kind: number): Int32Array {
    let sorted = this.#sorted.get(kind);
    if (!sorted) {
      const numbers: number[] = [];
      for (let number = 0; number < this.#termCount; number++)
        if (this.#terms[STRIDE * number]! >>> 24 === kind) numbers.push(number);
      sorted = this.#inOrder(Int32Array.from(numbers));
      this.#sorted.set(kind, sorted);
    }
    return sorted;
  }

  /** Removes the newest postings until there are `count`. */
  truncate(count: number): void {
    this.#sorted.clear();
    while (this.#count > count) {
      const posting = --this.#count;
      const number = this.#owners[posting]!;
      const at = STRIDE * number;
      this.#terms[at + LAST] = this.#previous[posting]!;
      // Terms without postings are the newest ones, because later ones have been removed already.
      if (--this.#terms[at + COUNT]! === 0) {
        this.#slots[this.#slotOf(this.#terms, at)] = 0;
        this.#termCount--;
      }
    }
  }

  /** Removes everything and keeps the memory. */
  clear(): void {
    this.#sorted.clear();
    this.#slots.fill(0);
    this.#termCount = this.#count = 0;
  }

  /** Number of distinct terms whose kinds are in the Bloom filter. */
  get filteredTerms(): number {
    let filtered = 0;
    for (let at = 0; at < STRIDE * this.#termCount; at += STRIDE) if (isFiltered(this.#terms[at]! >>> 24)) filtered++;
    return filtered;
  }

  /**
   * Adds all postings to `builder` in the order of their terms. Yields when that order is made, and then whenever `slice` postings
   * have been added, or a few more: all of one term are added at once.
   */
  *writeTo(builder: RunBuilder, slice: number): Generator<void> {
    const single = [0];
    const numbers = new Int32Array(this.#termCount);
    for (let number = 0; number < numbers.length; number++) numbers[number] = number;
    this.#inOrder(numbers);
    yield;
    let until = builder.count + slice;
    for (const number of numbers) {
      const at = STRIDE * number;
      if (this.#terms[at + COUNT] === 1) {
        single[0] = this.#indexes[this.#terms[at + FIRST]!]!;
        builder.add(this.#terms, at, single);
      } else builder.add(this.#terms, at, this.#list(number));
      if (builder.count < until) continue;
      yield;
      until = builder.count + slice;
    }
  }

  /**
   * Puts the numbers of terms into the order of their terms. The first four bytes of a term and its number are sorted as one
   * double, which takes 3 ms for 40,000 terms. Only terms with the same four bytes are compared further.
   * @returns `numbers`
   */
  #inOrder(numbers: Int32Array): Int32Array {
    const count = numbers.length;
    const numberBits = Math.ceil(Math.log2(this.#termCount + 1));
    const radix = 2 ** numberBits;
    const dropped = Math.max(0, 32 + numberBits - EXACT_BITS);
    const keys = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const number = numbers[i]!;
      keys[i] = (this.#terms[STRIDE * number]! >>> dropped) * radix + number;
    }
    keys.sort();
    const beginningOf = (number: number) => this.#terms[STRIDE * number]! >>> dropped;
    for (let i = 0; i < count; i++) numbers[i] = keys[i]! % radix;
    for (let from = 0, to = 0; from < count; from = to) {
      const beginning = beginningOf(numbers[from]!);
      do to++;
      while (to < count && beginningOf(numbers[to]!) === beginning);
      if (to > from + 1) numbers.subarray(from, to).sort((a, b) => this.#order(a, b));
    }
    return numbers;
  }

  #order(a: number, b: number): number {
    return compare(this.#terms, STRIDE * a, this.#terms, STRIDE * b);
  }

  #list(number: number): number[] {
    const at = STRIDE * number;
    const length = this.#terms[at + COUNT]!;
    const list = new Array<number>(length);
    for (
      let rank = length - 1, posting = this.#terms[at + LAST]!;
      rank >= 0;
      rank--, posting = this.#previous[posting]!
    )
      list[rank] = this.#indexes[posting]!;
    return list;
  }

  /** The slot that holds the term at `at` of `words`, or that it would take. */
  #slotOf(words: Int32Array, at: number): number {
    const mask = this.#slots.length - 1;
    let hash = 0;
    for (let i = 0; i < WORDS; i++) hash = (hash + Math.imul(words[at + i]!, MULTIPLIERS[i]!)) | 0;
    for (let slot = hash >>> this.#shift; ; slot = (slot + 1) & mask) {
      const number = this.#slots[slot]! - 1;
      if (number < 0 || compare(this.#terms, STRIDE * number, words, at) === 0) return slot;
    }
  }

  #find(term: string): number {
    wordsOf(term, 0, sought);
    return this.#slots[this.#slotOf(sought, 0)]! - 1;
  }

  /** The number of the term at `at` of `words`; adds the term if it is new. */
  #enter(words: Int32Array, at: number): number {
    let slot = this.#slotOf(words, at);
    const known = this.#slots[slot]! - 1;
    if (known >= 0) return known;
    if (STRIDE * (this.#termCount + 1) > this.#terms.length) {
      this.#growTerms();
      slot = this.#slotOf(words, at);
    }
    if (this.#sorted.size) this.#sorted.clear();
    const number = this.#termCount++;
    for (let i = 0; i < WORDS; i++) this.#terms[STRIDE * number + i] = words[at + i]!;
    this.#terms[STRIDE * number + COUNT] = 0;
    this.#slots[slot] = number + 1;
    return number;
  }

  #append(number: number, index: number): void {
    const at = STRIDE * number;
    const count = this.#terms[at + COUNT]!;
    // An entry that is added twice under one term counts once.
    if (count && this.#indexes[this.#terms[at + LAST]!] === index) return;
    if (this.#count === this.#indexes.length) this.#growPostings();
    const posting = this.#count++;
    this.#indexes[posting] = index;
    this.#owners[posting] = number;
    this.#previous[posting] = count ? this.#terms[at + LAST]! : -1;
    if (!count) this.#terms[at + FIRST] = posting;
    this.#terms[at + LAST] = posting;
    this.#terms[at + COUNT] = count + 1;
  }

  #growTerms(): void {
    const terms = this.#terms;
    this.#terms = new Int32Array(2 * terms.length);
    this.#terms.set(terms);
    this.#slots = new Int32Array(2 * this.#slots.length);
    this.#shift--;
    for (let number = 0; number < this.#termCount; number++)
      this.#slots[this.#slotOf(this.#terms, STRIDE * number)] = number + 1;
  }

  #growPostings(): void {
    const [indexes, owners, previous] = [this.#indexes, this.#owners, this.#previous];
    this.#indexes = new Float64Array(2 * this.#count);
    this.#owners = new Int32Array(2 * this.#count);
    this.#previous = new Int32Array(2 * this.#count);
    this.#indexes.set(indexes);
    this.#owners.set(owners);
    this.#previous.set(previous);
  }
}
