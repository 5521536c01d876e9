/**
 * Counts of requests in fixed windows of time, in memory that the threads of a process share. All threads together let
 * exactly the limit pass, and refuse nobody earlier.
 *
 * A thread may be ended between any two of its steps. A lock that it held would then stay taken for ever, because others
 * cannot see whether a thread has ended or is only slow. So there is no lock. A word is changed only by `compareExchange`,
 * and a thread that finds another one's work unfinished finishes it.
 *
 * The table has sets of slots. The hash of a client names its set; a slot of that set holds the client's window:
 *
 *     set:   newest, then 16 slots
 *     slot:  START, CLIENT, COUNT, USED
 *
 * A window is opened in four steps: the set's `newest` becomes the hash of the client with a number instead of its lowest
 * bits, and then START, CLIENT and COUNT of the slot get that number. The lowest bits of the number name the slot, so
 * `newest` says everything that must be done. It changes again only when all is done, and only if its thread has looked for
 * the client since it changed last. So a client never has two windows. A slot counts only if its three words have the same
 * number, so what is done in part counts for nobody. A thread that was slow changes nothing any more: the words that it
 * wants to change have another number.
 *
 * Numbers return after 1,024 windows in a set or more. A thread would have to sleep between two steps for exactly so long that
 * the same client has the same number again. Nobody can aim at that, and one window would be counted twice.
 */

const SETS = 16_384;
const SLOTS = 16;
/** Words of 64 bits in a slot. */
const SLOT_WORDS = 4;
const SET_WORDS = 1 + SLOTS * SLOT_WORDS;

/** When the window began, in microseconds, above the number of the window. */
const START = 0;
/** The hash of the client, with the number instead of its lowest bits. 0 in a slot that was never used. */
const CLIENT = 1;
/** The requests in the window, above the lowest bits of START. */
const COUNT = 2;
/** When the client was last seen, in microseconds. */
const USED = 3;

/** As many bits as a set's place has: the hash of a client is known whole by its set and the rest of the word. */
const NUMBER_BITS = 14n;
const NUMBER = (1n << NUMBER_BITS) - 1n;
/** Numbers begin at 1: 0 is that of words that were never used. */
const NUMBERS = 2 ** Number(NUMBER_BITS);
const COUNT_SHIFT = 34n;
const ONE_REQUEST = 1n << COUNT_SHIFT;
const BELOW_COUNT = ONE_REQUEST - 1n;

/**
 * Bytes of a table, 8.5 MB with room for 262,144 clients. The system gives memory only for pages that were used. Hashes
 * spread clients unevenly, and a set forgets a client only if it is full: with 50,000 clients, in one of 2,000 tables.
 */
export const TABLE_BYTES = SETS * SET_WORDS * 8;

/** A client's window, as one request found it. */
export interface ClientWindow {
  /** Requests that passed, those included that were counted now. */
  readonly count: number;
  /** Microseconds until the window ends: more than 0, and not more than a window has. */
  readonly left: number;
  /** Whether requests were refused, because fewer were left. */
  readonly exceeded: boolean;
}

/** The words of a window that is open. */
interface Open {
  readonly start: number;
  readonly counted: bigint;
}

export class WindowTable {
  readonly #words: BigUint64Array;
  readonly #requests: number;
  /** Length of a window in microseconds. */
  readonly #length: number;

  /**
   * @param buffer zeros at first; other threads count in it, too
   * @param offset where the table begins, a multiple of 8
   * @param requests that pass in a window, less than 2^30, which COUNT can hold; the same in all threads, like `seconds`
   * @param seconds length of a window
   */
  constructor(buffer: SharedArrayBuffer, offset: number, requests: number, seconds: number) {
    this.#words = new BigUint64Array(buffer, offset, SETS * SET_WORDS);
    this.#requests = requests;
    this.#length = seconds * 1_000_000;
  }

  /**
   * Counts `n` requests of a client: all of them, or none if fewer are left. The first one opens a window. A full set forgets
   * the client that was seen longest ago, which can only let more requests pass.
   * @param client a hash of 64 bits that clients cannot choose
   */
  count(client: bigint, n = 1): ClientWindow {
    // Each turn but the last means that another thread got further, or that a window was opened.
    for (;;) {
      const now = microseconds();
      const slot = this.#find(client);
      const open = this.#read(slot, client);
      if (!open || now - open.start >= this.#length) {
        this.#open(client, now);
        continue;
      }
      this.#touch(slot, now);
      const { counted } = open;
      const count = Number(counted >> COUNT_SHIFT);
      const left = this.#left(open, now);
      if (count + n > this.#requests) return { count, left, exceeded: true };
      if (Atomics.compareExchange(this.#words, slot + COUNT, counted, counted + BigInt(n) * ONE_REQUEST) === counted)
        return { count: count + n, left, exceeded: false };
    }
  }

  /** A client's window, without counting a request. */
  look(client: bigint): ClientWindow {
    const now = microseconds();
    const open = this.#read(this.#find(client), client);
    if (!open || now - open.start >= this.#length) return { count: 0, left: this.#length, exceeded: false };
    return { count: Number(open.counted >> COUNT_SHIFT), left: this.#left(open, now), exceeded: false };
  }

  /** Never sets the time back: a thread that was slow would have a client forgotten that was just seen. */
  #touch(slot: number, now: number): void {
    const used = Atomics.load(this.#words, slot + USED);
    if (used < now) Atomics.compareExchange(this.#words, slot + USED, used, BigInt(now));
  }

  /** The window may have begun after this thread read the clock. */
  #left({ start }: Open, now: number): number {
    return this.#length - Math.max(0, now - start);
  }

  /**
   * The slot of a client, or −1. A set is searched from a slot that the hash names to the first one that was never used:
   * most clients are found at once.
   */
  #find(client: bigint): number {
    const set = setOf(client);
    const home = homeOf(client);
    for (let i = 0; i < SLOTS; i++) {
      const slot = slotAt(set, home + i);
      const found = Atomics.load(this.#words, slot + CLIENT);
      if (found === 0n) return -1;
      if (isSame(found, client)) return slot;
    }
    return -1;
  }

  /** The window of a client in its slot; null if there is none, or if it is only opened in part. */
  #read(slot: number, client: bigint): Open | null {
    if (slot < 0) return null;
    const found = Atomics.load(this.#words, slot + CLIENT);
    const begun = Atomics.load(this.#words, slot + START);
    const counted = Atomics.load(this.#words, slot + COUNT);
    const isWhole =
      isSame(found, client) && hasNumber(begun, found) && (counted & BELOW_COUNT) === (begun & BELOW_COUNT);
    return isWhole ? { start: Number(begun >> NUMBER_BITS), counted } : null;
  }

  /** Opens a window for a client that has none or whose window has ended, unless another thread does so. */
  #open(client: bigint, now: number): void {
    const set = setOf(client);
    const newest = Atomics.load(this.#words, set);
    this.#finish(set, newest);
    // From here on, no window is opened in this set while `newest` is the newest.
    let slot = this.#find(client);
    if (slot < 0) slot = this.#freeSlot(client);
    else if (now - Number(Atomics.load(this.#words, slot + START) >> NUMBER_BITS) < this.#length) return;
    const opening = client - (client & NUMBER) + nextNumber(newest, (slot - set - 1) / SLOT_WORDS);
    if (Atomics.compareExchange(this.#words, set, newest, opening) !== newest) return;
    this.#touch(slot, now);
    // If the thread ends here, the next one that opens a window in this set goes on.
    this.#finish(set, opening);
  }

  /** Does what is left to do for the newest window of a set. Any number of threads may do this at the same time. */
  #finish(set: number, newest: bigint): void {
    const slot = slotAt(set, Number(newest & NUMBER));
    // The last step of four.
    if (hasNumber(Atomics.load(this.#words, slot + COUNT), newest)) return;
    this.#put(set, newest, slot + START, (BigInt(microseconds()) << NUMBER_BITS) + (newest & NUMBER));
    this.#put(set, newest, slot + CLIENT, newest);
    this.#put(set, newest, slot + COUNT, Atomics.load(this.#words, slot + START) & BELOW_COUNT);
  }

  /** Changes a word of the newest window, unless another thread did that or a newer window is there. */
  #put(set: number, newest: bigint, at: number, value: bigint): void {
    for (;;) {
      const old = Atomics.load(this.#words, at);
      if (hasNumber(old, newest)) return;
      // Must come after `old` was read: then `old` is from before this window, and never returns after it.
      if (Atomics.load(this.#words, set) !== newest) return;
      // Fails if another thread was faster, or if the client before was counted once more.
      if (Atomics.compareExchange(this.#words, at, old, value) === old) return;
    }
  }

  /** The slot for a client that has none: one that was never used, otherwise the one that was not used for longest. */
  #freeSlot(client: bigint): number {
    const set = setOf(client);
    const home = homeOf(client);
    let [oldest, oldestUse] = [-1, 0n];
    for (let i = 0; i < SLOTS; i++) {
      const slot = slotAt(set, home + i);
      if (Atomics.load(this.#words, slot + CLIENT) === 0n) return slot;
      const use = Atomics.load(this.#words, slot + USED);
      if (oldest < 0 || use < oldestUse) [oldest, oldestUse] = [slot, use];
    }
    return oldest;
  }
}

/**
 * A number after that of the newest window, which names a slot. Should the slot have that number since all others were
 * used, then its window seems to be whole already: nothing changes, and the client's thread tries the next number.
 */
function nextNumber(newest: bigint, place: number): bigint {
  const last = Number(newest & NUMBER);
  const next = last + 1 + ((place - last - 1) & (SLOTS - 1));
  return BigInt(next % NUMBERS || SLOTS);
}

/** The time of all threads in whole microseconds. Nobody can set this clock, so a window has its length whatever the date is. */
const microseconds = (): number => Number(process.hrtime.bigint() / 1000n);

const setOf = (client: bigint): number => Number(client & NUMBER) * SET_WORDS;

const homeOf = (client: bigint): number => Number((client >> NUMBER_BITS) & BigInt(SLOTS - 1));

const slotAt = (set: number, place: number): number => set + 1 + (place & (SLOTS - 1)) * SLOT_WORDS;

const isSame = (found: bigint, client: bigint): boolean => (found ^ client) <= NUMBER;

const hasNumber = (word: bigint, other: bigint): boolean => ((word ^ other) & NUMBER) === 0n;
