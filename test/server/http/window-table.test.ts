/** Windows of clients in memory that threads share: exact counts, also when threads stop or end between any two steps. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TABLE_BYTES, WindowTable } from "#cairnlog/server/http/limits/window-table.js";

const LIMIT = 3;
const SECONDS = 10;
const WINDOW = SECONDS * 1_000_000;
const SLOTS = 16;

/** Microseconds. */
let now = 1_000_000_000;
const realTime = process.hrtime.bigint;
// No spies of vitest: they keep every call.
beforeEach(() => {
  process.hrtime.bigint = () => BigInt(now) * 1000n;
});
afterEach(() => {
  process.hrtime.bigint = realTime;
});

const tableIn = (buffer: SharedArrayBuffer): WindowTable => new WindowTable(buffer, 0, LIMIT, SECONDS);
const newTable = (): WindowTable => tableIn(new SharedArrayBuffer(TABLE_BYTES));

/** The hash of a client in one of 16,384 sets. The lowest four bits of `id` name the slot where its search begins. */
const client = (set: number, id: number): bigint => (BigInt(id) << 14n) + BigInt(set);

/** Requests of a client that pass until one is refused. */
function passing(table: WindowTable, who: bigint): number {
  for (let passed = 0; ; passed++) if (table.count(who).exceeded) return passed;
}

describe("one thread", () => {
  test("counts like a map of windows", () => {
    const action = fc.oneof(
      fc.record({
        kind: fc.constantFrom("count", "look"),
        id: fc.nat(SLOTS - 1),
        n: fc.constantFrom(1, 1, 2, LIMIT + 1),
      }),
      fc.record({
        kind: fc.constant("wait"),
        id: fc.constantFrom(1, 999_999, WINDOW / 4, WINDOW - 1, WINDOW),
        n: fc.constant(0),
      }),
    );
    const buffer = new SharedArrayBuffer(TABLE_BYTES);
    let set = 0;
    fc.assert(
      fc.property(fc.array(action, { maxLength: 100 }), (actions) => {
        set++;
        const table = tableIn(buffer);
        const model = new Map<number, { start: number; count: number }>();
        for (const { kind, id, n } of actions) {
          if (kind === "wait") {
            now += id;
            continue;
          }
          const known = model.get(id);
          const isOpen = known !== undefined && now - known.start < WINDOW;
          const window = isOpen ? known : { start: now, count: 0 };
          // Ids of one slot, of neighbours, and of a set's last slot.
          const who = client(set, id * 5 + 11);
          if (kind === "look") {
            expect(table.look(who)).toEqual({
              count: window.count,
              left: window.start + WINDOW - now,
              exceeded: false,
            });
            continue;
          }
          const exceeded = window.count + n > LIMIT;
          if (!exceeded) window.count += n;
          model.set(id, window);
          expect(table.count(who, n)).toEqual({ count: window.count, left: window.start + WINDOW - now, exceeded });
        }
      }),
      { numRuns: 500 },
    );
  });

  test("clients whose hashes differ in one bit are different clients", () => {
    const table = newTable();
    const who = 0x0123_4567_89ab_cdefn;
    passing(table, who);
    for (let bit = 0n; bit < 64n; bit++) expect(table.look(who ^ (1n << bit)).count).toBe(0);
    expect(table.look(who).count).toBe(LIMIT);
  });

  test.each([0, 1, 16_383])("set %d: of 17 clients the one that was seen longest ago is forgotten", (set) => {
    const table = newTable();
    for (let id = 0; id < SLOTS; id++, now++) passing(table, client(set, id));
    // Refused requests count as seen, looks do not.
    expect(table.count(client(set, 0)).exceeded).toBe(true);
    expect(table.look(client(set, 1)).count).toBe(LIMIT);
    now++;
    expect(table.count(client(set, SLOTS))).toMatchObject({ count: 1, exceeded: false });
    const counts = Array.from({ length: SLOTS + 1 }, (_, id) => table.look(client(set, id)).count);
    expect(counts).toEqual([LIMIT, 0, ...Array(SLOTS - 2).fill(LIMIT), 1]);
    // Nobody in another set is forgotten.
    expect(table.look(client((set + 1) % 16_384, 0)).count).toBe(0);
  });

  test("a busy client is remembered however many others come, and nobody is refused for it", () => {
    const table = newTable();
    const busy = client(5, 0);
    passing(table, busy);
    for (let id = 1; id < 20_000; id++, now++) {
      expect(table.count(client(5, id))).toMatchObject({ count: 1, exceeded: false });
      if (id % 10 === 0) expect(table.count(busy).exceeded).toBe(true);
    }
  });

  test("windows of a client are right however often they were opened", () => {
    const table = newTable();
    // Stays in its slot while the numbers of the set come round again and again.
    const resting = client(7, 1);
    for (let round = 0; round < 2_200; round++) {
      expect(table.look(client(7, 0))).toEqual({ count: 0, left: WINDOW, exceeded: false });
      expect(passing(table, client(7, 0))).toBe(LIMIT);
      if (round % 1_023 === 0) expect(passing(table, resting)).toBe(LIMIT);
      now += WINDOW;
    }
  });

  test("50,000 clients are remembered", () => {
    process.hrtime.bigint = realTime;
    const table = new WindowTable(new SharedArrayBuffer(TABLE_BYTES), 0, LIMIT, 86_400);
    // Hashes as if chosen by chance, the same in each run.
    const hash = (i: number): bigint => BigInt.asUintN(64, BigInt(i + 1) * 0x9e37_79b9_7f4a_7c15n);
    for (let i = 0; i < 50_000; i++) table.count(hash(i));
    let remembered = 0;
    for (let i = 0; i < 50_000; i++) remembered += table.look(hash(i)).count;
    expect(remembered).toBe(50_000);
  });
});

const REAL = { load: Atomics.load, store: Atomics.store, compareExchange: Atomics.compareExchange };
type Step = keyof typeof REAL;
const STEPS = Object.keys(REAL) as Step[];
type Operation = (words: BigUint64Array, at: number, ...values: bigint[]) => bigint;
/** Called before each step on shared memory. */
let beforeStep: ((kind: Step) => void) | null = null;

/**
 * Runs `work`, and `between` before each of its steps on shared memory: other threads may do anything there. If `between`
 * throws, the thread of `work` ends there.
 * @returns the number of steps
 */
function stepwise(work: () => void, between: (step: number, kind: Step) => void): number {
  const outer = beforeStep;
  let step = 0;
  const mine = (kind: Step): void => {
    beforeStep = null;
    try {
      between(step++, kind);
    } finally {
      beforeStep = mine;
    }
  };
  beforeStep = mine;
  try {
    work();
  } finally {
    beforeStep = outer;
  }
  return step;
}

class Ended extends Error {}

/** Runs `work` in a thread that ends before a step, or before a change. @returns whether it ended */
function ending(work: () => void, last: number, counted: "steps" | "changes" = "steps"): boolean {
  let passed = 0;
  try {
    stepwise(work, (_, kind) => {
      if ((counted === "steps" || kind !== "load") && passed++ === last) throw new Ended();
    });
    return false;
  } catch (error) {
    if (error instanceof Ended) return true;
    throw error;
  }
}

/** Threads that count in one table, and what they did. */
class Threads {
  readonly #buffer: SharedArrayBuffer;
  readonly passed = new Map<bigint, number>();
  /** Requests of threads that ended. They may be counted or not. */
  readonly lost = new Map<bigint, number>();

  constructor(buffer: SharedArrayBuffer) {
    this.#buffer = buffer;
  }

  /** A request in a thread of its own. Refusals are right: none comes before the limit is reached. */
  ask(who: bigint): boolean {
    const { exceeded, count } = tableIn(this.#buffer).count(who);
    const passed = this.passed.get(who) ?? 0;
    if (exceeded) expect(passed + (this.lost.get(who) ?? 0)).toBeGreaterThanOrEqual(LIMIT);
    else this.passed.set(who, passed + 1);
    expect(count).toBeLessThanOrEqual(LIMIT);
    return !exceeded;
  }

  /** A request in a thread that ends before the step `last`. @returns whether it ended */
  askEnding(who: bigint, last: number): boolean {
    const isEnded = ending(() => this.ask(who), last);
    if (isEnded) this.lost.set(who, (this.lost.get(who) ?? 0) + 1);
    return isEnded;
  }

  /** Asks until a request of `who` is refused. Then exactly the limit has passed. */
  exhaust(who: bigint): void {
    while (this.ask(who));
    const passed = this.passed.get(who) ?? 0;
    expect(passed).toBeLessThanOrEqual(LIMIT);
    expect(passed).toBeGreaterThanOrEqual(LIMIT - (this.lost.get(who) ?? 0));
  }
}

/** What is in the set of the clients `X` and `Y` before they ask at the same time. */
const BEFORE: Readonly<Record<string, (table: WindowTable, set: number) => void>> = {
  "an unused set": () => {},
  "another client": (table, set) => void table.count(client(set, 1)),
  "their windows, which have ended": (table, set) => {
    for (const id of [X, Y]) passing(table, client(set, id));
    now += WINDOW;
  },
  "a full set": (table, set) => {
    for (let id = 100; id < 100 + SLOTS; id++, now++) passing(table, client(set, id));
  },
  ...Object.fromEntries(
    [1, 2, 3, 4].map((changes) => [
      `a window for which ${changes} of 5 changes were made`,
      (table: WindowTable, set: number) => {
        passing(table, client(set, Y));
        now += WINDOW;
        expect(ending(() => table.count(client(set, Y + 1)), changes, "changes")).toBe(true);
      },
    ]),
  ),
};
/** Their search begins at the same slot. */
const [X, Y] = [1 << 4, 2 << 4];

describe("threads that stop or end between any two steps", () => {
  let buffer: SharedArrayBuffer;
  let set = 0;
  beforeEach(() => {
    buffer = new SharedArrayBuffer(TABLE_BYTES);
    set = 0;
    for (const name of STEPS) {
      const real = REAL[name] as Operation;
      const stepping: Operation = (words, at, ...values) => {
        beforeStep?.(name);
        return real(words, at, ...values);
      };
      Object.assign(Atomics, { [name]: stepping });
    }
  });
  afterEach(() => {
    Object.assign(Atomics, REAL);
  });

  /** A set of its own for each run. */
  function prepared(before: string): { threads: Threads; x: bigint; y: bigint } {
    set++;
    BEFORE[before]!(tableIn(buffer), set);
    return { threads: new Threads(buffer), x: client(set, X), y: client(set, Y) };
  }

  test.each(Object.keys(BEFORE))("%s: one stops, another one asks", (before) => {
    for (const asked of ["x", "y", "xx", "xy", "yx", "xyxy", "yyxx"])
      for (let stop = 0, isOver = false; !isOver; stop++) {
        const { threads, x, y } = prepared(before);
        const others = () => {
          for (const letter of asked) threads.ask(letter === "x" ? x : y);
        };
        const steps = stepwise(
          () => threads.ask(x),
          (step) => {
            if (step === stop) others();
          },
        );
        isOver = stop > steps;
        threads.exhaust(x);
        threads.exhaust(y);
      }
  });

  test.each(Object.keys(BEFORE))("%s: one stops, another one stops while it goes on, a third one asks", (before) => {
    // The first one stops only before its changes: nobody sees what it reads.
    for (let stop = 0, isStopped = true; isStopped; stop++)
      for (let second = 0, steps = 1; second < steps; second++) {
        const { threads, x, y } = prepared(before);
        let changes = 0;
        isStopped = false;
        stepwise(
          () => threads.ask(x),
          (_, kind) => {
            if (kind === "load" || changes++ !== stop) return;
            isStopped = true;
            steps = stepwise(
              () => threads.ask(second % 2 ? x : y),
              (step) => {
                if (step === second) for (const who of [x, y, x]) threads.ask(who);
              },
            );
          },
        );
        threads.exhaust(x);
        threads.exhaust(y);
      }
  });

  test.each(Object.keys(BEFORE))("%s: one ends, others go on", (before) => {
    for (const second of ["x", "y"])
      for (let last = 0, isEnded = true; isEnded; last++) {
        const { threads, x, y } = prepared(before);
        isEnded = threads.askEnding(x, last);
        // Another one ends while it does what the first one left.
        threads.askEnding(second === "x" ? x : y, last);
        threads.exhaust(x);
        threads.exhaust(y);
      }
  });

  test("a thread that stops while a full set forgets all its clients changes nothing of the new ones", () => {
    for (let stop = 0, isStopped = true; isStopped; stop++) {
      const { threads, x, y } = prepared("a full set");
      const table = tableIn(buffer);
      isStopped = false;
      stepwise(
        () => void table.count(x),
        (step) => {
          if (step !== stop) return;
          isStopped = true;
          for (let id = 200; id < 200 + 2 * SLOTS; id++, now++) expect(table.count(client(set, id)).count).toBe(1);
          threads.exhaust(y);
        },
      );
      if (!isStopped) break;
      // Beside x and y.
      const remembered = Array.from({ length: 2 * SLOTS }, (_, id) => table.look(client(set, 200 + id)).count);
      expect(remembered).toEqual([...Array(SLOTS + 2).fill(0), ...Array(SLOTS - 2).fill(1)]);
      expect(table.look(x).count).toBe(1);
      threads.exhaust(y);
    }
  });
});
