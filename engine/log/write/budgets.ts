/**
 * Budgets of stored bytes, for each address and for all strangers together. They belong to the thread of the log's writer.
 *
 * What a command has stored is counted after it has run, and in the transaction of its batch: a command that fails takes
 * nothing, a restart forgets nothing, and a node that takes over has the counts, because the journal carries the rows.
 *
 * A row is written ahead: it takes as many bytes as were taken before, up to a thousandth of the budget, and memory holds what
 * of that is not spent yet. Most commands change memory alone. If we crash here, what was not spent counts as spent: at most a
 * thousandth of the budget, and never more than was spent. It is never the other way round, because bytes are spent only in the
 * batch that reserves them, or in a later one, which is on disk only after it.
 *
 * Clients choose their addresses, so the number of rows is limited by design. The hash of an address names one of 16,384 rows,
 * and a row has room for 16 windows: 262,144 addresses in 24 hours, in at most 9 MB. A row that is full forgets the window
 * with the fewest bytes. That lets a few more bytes through and refuses nobody. To be forgotten with a budget that is spent,
 * an attacker needs 16 other addresses with larger counts in the same row, and cannot know which addresses share one.
 */
import { randomBytes } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import { Recent } from "../../base/recent.js";
import { loadSodium } from "../../crypto/keys/ed25519.js";
import { storageFull } from "../../store/lmdb/health.js";
import type { BudgetLimits, Payer } from "../state/executor.js";
import type { LayeredState } from "../state/rows.js";

const WINDOW_S = 86_400;
/** Budgets of an address that the /48 of an IPv6 address has. */
const NETWORK_SHARE = 8;
const SETS = 16_384;
const WINDOWS_IN_SET = 16;
/** The key of the row of the strangers, and the number of their window. */
const STRANGERS = -1;
const SECRET_BYTES = 16;
/** Addresses whose hashes are remembered. */
const KEPT_NAMES = 4096;
/** Addresses of which it is remembered what they have reserved. One that is forgotten has spent it. */
const KEPT_RESERVES = 16_384;
/** The part of a budget that is reserved at once. */
const RESERVED_PART = 1024;
/** A number of a row: as many bits as a JSON number holds exactly. */
const HIGH_BITS = 2 ** 21 - 1;

/** The hashes of a client; null for an IPv4 address, which is in no network that is counted. */
interface Names {
  readonly address: number;
  readonly network: number | null;
}

/** Bytes of one address, or of all strangers, since a moment. */
interface Window {
  readonly name: number;
  /** Seconds since the epoch. */
  start: number;
  used: number;
  /** Whether the batch that is being formed has changed it. */
  isChanged: boolean;
}

/** What a window's row has counted, and nobody has spent. */
interface Reserve {
  /** That of the window. */
  start: number;
  left: number;
}

export class Budgets {
  readonly #limits: BudgetLimits;
  #state: LayeredState | null = null;
  /** Key of the hash of addresses: the row shows to nobody which addresses have written. Null until it is needed. */
  #secret: Buffer | null = null;
  #isNewSecret = false;
  readonly #names = new Recent<string, Names>(KEPT_NAMES);
  /** By name of the window. Bytes that a batch on its way to the disk has reserved are here, too: if it fails, all are forgotten. */
  readonly #reserves = new Recent<number, Reserve>(KEPT_RESERVES);
  /** What the batch has read, by key of the row. */
  readonly #sets = new Map<number, Window[]>();
  readonly #changed = new Set<number>();

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** Begins with a batch, whose commands read `state`. */
  begin(state: LayeredState): void {
    this.#state = state;
    this.#sets.clear();
    this.#changed.clear();
  }

  /** The rows on disk may be others now. */
  forget(): void {
    this.#secret = null;
    this.#isNewSecret = false;
    this.#names.clear();
    this.#reserves.clear();
  }

  /**
   * Takes what a command has stored.
   * @param now seconds since the epoch
   * @param isTight whether the disk has room only for those whom an anchor reaches
   * @throws CairnlogError `budget-spent`, `storage-full`; then nothing is taken
   */
  take({ client, isReached }: Payer, bytes: number, now: number, isTight: boolean): void {
    if (!bytes) return;
    if (isTight && !isReached)
      throw storageFull("The room that is left on the disk of the log is kept for keys that its anchors reach.");
    const { perAddress, fromStrangers } = this.#limits;
    const names = perAddress === null ? null : this.#namesOf(client);
    const network = names?.network ?? null;
    const ofNetwork = NETWORK_SHARE * perAddress!;
    const isCounted = !isReached && fromStrangers !== null;
    if (names) this.#check(names.address, bytes, perAddress!, now, OF_ADDRESS);
    if (network !== null) this.#check(network, bytes, ofNetwork, now, OF_NETWORK);
    if (isCounted) this.#check(STRANGERS, bytes, fromStrangers, now, OF_STRANGERS);
    // Only now, because a budget that is spent leaves the others as they are.
    if (names) this.#spend(names.address, bytes, perAddress!, now);
    if (network !== null) this.#spend(network, bytes, ofNetwork, now);
    if (isCounted) this.#spend(STRANGERS, bytes, fromStrangers, now);
  }

  /** Writes what the batch's commands have taken. @param now as for `take` */
  end(now: number): void {
    if (!this.#changed.size) return;
    const state = this.#state!;
    if (this.#isNewSecret) state.put("secrets", "addresses", { secret: this.#secret! });
    this.#isNewSecret = false;
    for (const key of this.#changed) {
      const windows = fitting(this.#sets.get(key)!.filter((window) => isOpen(window, now)));
      state.put("byteBudgets", key, { windows: windows.flatMap(({ name, start, used }) => [name, start, used]) });
    }
  }

  /** Bytes that are reserved, in a window that has not ended. */
  #reserved(name: number, now: number): Reserve | undefined {
    const reserve = this.#reserves.get(name);
    return reserve && now < reserve.start + WINDOW_S ? reserve : undefined;
  }

  /** @throws CairnlogError `budget-spent` */
  #check(name: number, bytes: number, limit: number, now: number, what: string): void {
    const reserved = this.#reserved(name, now)?.left ?? 0;
    if (reserved >= bytes) return;
    const window = this.#window(name);
    const used = isOpen(window, now) ? window.used : 0;
    const left = limit - used + reserved;
    if (bytes <= left) return;
    const retryAfter = used ? window.start + WINDOW_S - now : WINDOW_S;
    throw new CairnlogError(
      "budget-spent",
      `${what}: ${left} of ${limit} are left, and this takes ${bytes}. Try again in ${retryAfter} seconds.`,
      { retryAfter },
    );
  }

  /** To be called after `#check`. */
  #spend(name: number, bytes: number, limit: number, now: number): void {
    const reserve = this.#reserved(name, now);
    if (reserve && reserve.left >= bytes) {
      reserve.left -= bytes;
      return;
    }
    const window = this.#window(name);
    if (!isOpen(window, now)) [window.start, window.used] = [now, 0];
    const needed = bytes - (reserve?.left ?? 0);
    const ahead = Math.min(window.used, Math.floor(limit / RESERVED_PART), limit - window.used);
    const taken = Math.max(needed, ahead);
    window.used += taken;
    window.isChanged = true;
    this.#changed.add(keyOf(name));
    const kept = this.#reserves.made(name, () => ({ start: 0, left: 0 }));
    [kept.start, kept.left] = [window.start, taken - needed];
  }

  #window(name: number): Window {
    const key = keyOf(name);
    let set = this.#sets.get(key);
    if (!set) {
      set = windowsOf(this.#state!.get("byteBudgets", key)?.windows ?? []);
      this.#sets.set(key, set);
    }
    for (const window of set) if (window.name === name) return window;
    const window = { name, start: 0, used: 0, isChanged: false };
    set.push(window);
    return window;
  }

  #namesOf(client: string): Names {
    return this.#names.made(client, () => {
      const network = networkOf(client);
      return { address: this.#hash(client), network: network === null ? null : this.#hash(network) };
    });
  }

  /** SipHash-2-4. An attacker chooses addresses, and cannot choose those that share a row. */
  #hash(text: string): number {
    this.#secret ??= this.#readSecret();
    const out = Buffer.alloc(8);
    loadSodium().crypto_shorthash(out, Buffer.from(text, "latin1"), this.#secret);
    return (out.readUInt32LE(4) & HIGH_BITS) * 2 ** 32 + out.readUInt32LE(0);
  }

  /** If we crash before the row is on disk, neither is anything that was counted with this secret. */
  #readSecret(): Buffer {
    const row = this.#state!.get("secrets", "addresses");
    this.#isNewSecret = !row;
    return row ? Buffer.from(row.secret) : randomBytes(SECRET_BYTES);
  }
}

const OF_ADDRESS = "The bytes that one address may have stored in 24 hours are spent";
const OF_NETWORK = "The bytes that one network of addresses may have stored in 24 hours are spent";
const OF_STRANGERS = "The bytes that all keys together may have stored in 24 hours which no anchor reaches are spent";

const isOpen = ({ start, used }: Window, now: number): boolean => used > 0 && now < start + WINDOW_S;

const keyOf = (name: number): number => (name === STRANGERS ? STRANGERS : name % SETS);

/** The windows of a row: three numbers for each. */
function windowsOf(numbers: readonly number[]): Window[] {
  const windows: Window[] = [];
  for (let i = 0; i + 2 < numbers.length; i += 3)
    windows.push({ name: numbers[i]!, start: numbers[i + 1]!, used: numbers[i + 2]!, isChanged: false });
  return windows;
}

/** As many windows as a row has room for: the ones that this batch has changed, and of the others those with most bytes. */
function fitting(windows: Window[]): Window[] {
  if (windows.length <= WINDOWS_IN_SET) return windows;
  const rank = (a: Window, b: Window) => Number(b.isChanged) - Number(a.isChanged) || b.used - a.used;
  return windows.sort(rank).slice(0, WINDOWS_IN_SET);
}

/** The /48 of a /64, as text; null for an IPv4 address. */
function networkOf(client: string): string | null {
  const groups = client.split(":");
  return groups.length < 4 ? null : `${groups.slice(0, 3).join(":")}::/48`;
}
