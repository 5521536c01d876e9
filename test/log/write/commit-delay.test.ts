/** Where a journal on other machines decides, a batch waits for those who were just answered, and for nobody else. */
import { afterEach, describe, expect, test, vi } from "vitest";
import type { JournalRecord } from "#cairnlog/engine/journal/record.js";
import { CommitDelay } from "#cairnlog/engine/log/write/commit-delay.js";
import { Batch } from "#cairnlog/engine/store/schema/batch.js";
import { decodeRecord, FakeJournal } from "../../journal/fakejournal.js";
import { openTestLog } from "../harness.js";

const event = { event_type: "note", payload: {} };

/** A journal that answers after so many milliseconds. */
class SlowJournal extends FakeJournal {
  readonly isRemote?: true;
  readonly #milliseconds: number;
  /** Called when it is asked for a batch. */
  asked: () => void = () => {};

  constructor(milliseconds: number, isRemote: boolean) {
    super();
    this.#milliseconds = milliseconds;
    if (isRemote) this.isRemote = true;
  }

  override async propose(record: JournalRecord): Promise<Uint8Array | null> {
    if (record.batch) {
      this.asked();
      await new Promise((resolve) => setTimeout(resolve, this.#milliseconds));
    }
    return super.propose(record);
  }

  /** Entries in each batch. */
  get batches(): number[] {
    return this.records.flatMap((bytes) => {
      const { batch, firstIndex } = decodeRecord(bytes);
      return batch ? [new Batch(firstIndex, batch).count] : [];
    });
  }
}

describe("the wait", () => {
  afterEach(() => vi.useRealTimers());

  test("is for as many as were answered or wait, and a half of the time that the commit took at most", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const delay = new CommitDelay();
    expect(delay.wait(1)).toBe(0);
    delay.answered(3, 2, 10);
    expect([4, 5, 6].map((queued) => delay.wait(queued))).toEqual([5, 0, 0]);
    vi.advanceTimersByTime(4);
    expect(delay.wait(1)).toBe(1);
    vi.advanceTimersByTime(1);
    expect(delay.wait(1)).toBe(0);
  });
});

/** One append, then another that comes while it is on its way, and a third by the client of the first when it is answered. */
async function appended(isRemote: boolean): Promise<number[]> {
  const journal = new SlowJournal(200, isRemote);
  const { log } = await openTestLog({ journal });
  let meanwhile: Promise<unknown> | undefined;
  journal.asked = () => {
    meanwhile ??= log.append(event);
  };
  await log.append(event);
  await Promise.all([log.append(event), meanwhile]);
  return journal.batches;
}

test("a batch has who was just answered and who came meanwhile", async () => {
  expect(await appended(true)).toEqual([1, 2]);
});

test("those who do not come back are not waited for long, and who is alone not at all", async () => {
  const journal = new SlowJournal(300, true);
  const { log } = await openTestLog({ journal });
  await Promise.all([log.append(event), log.append(event), log.append(event)]);
  const waiting = vi.spyOn(CommitDelay.prototype, "wait");
  await log.append(event);
  expect(waiting.mock.results[0]!.value).toBeGreaterThan(0);
  waiting.mockClear();
  await log.append(event);
  expect(waiting.mock.results.map(({ value }) => value)).toEqual([0]);
  waiting.mockRestore();
  expect(journal.batches).toEqual([3, 1, 1]);
});

test("a log that asks nobody waits for nobody", async () => {
  const waiting = vi.spyOn(CommitDelay.prototype, "wait");
  await appended(false);
  expect(waiting).not.toHaveBeenCalled();
  waiting.mockRestore();
});
