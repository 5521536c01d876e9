/** What every row of a table has to show: a failure leaves nothing behind, the next call is like the first, and so is a close. */
import { expect, test } from "vitest";
import { added, begunBy, forgetBegun, held, takeMakers } from "./held.js";
import type { Row } from "./rows.js";

const FAILURES = 3;

/** The tests of each row. */
export function testRows(rows: readonly Row[]): void {
  test.each(rows)(
    "$name: after each failure the next call is as the first, and a close leaves nothing",
    async (row) => {
      const before = held();
      takeMakers();
      const subject = await row.open();
      const first = await subject.call();
      const holds = held();
      const pauses: (number | undefined)[] = [];
      for (let failures = 0; failures < FAILURES; failures++) {
        forgetBegun();
        await subject.fail();
        await subject.recover();
        if (row.pauses) pauses.push(begunBy(row.pauses)[0]);
        expect(await subject.call()).toEqual(first);
        await expect.poll(() => added(held(), holds), { interval: 20 }).toEqual([]);
      }
      expect(new Set(pauses).size, `first pauses: ${pauses}`).toBeLessThan(2);
      if (row.pauses) expect(pauses[0]).toBeDefined();
      await subject.close();
      await expect.poll(() => added(held(), subject.around), { interval: 20 }).toEqual([]);
      await subject.remove?.();
      await expect.poll(() => added(held(), before), { interval: 20 }).toEqual([]);
      const seen = takeMakers();
      expect(row.files.filter((file) => !seen.has(file))).toEqual([]);
    },
  );

  test.each(rows)("$name: closed after a failure, it leaves nothing", async (row) => {
    const before = held();
    const subject = await row.open();
    await subject.call();
    await subject.fail();
    await subject.close();
    await expect.poll(() => added(held(), subject.around), { interval: 20 }).toEqual([]);
    await subject.remove?.();
    await expect.poll(() => added(held(), before), { interval: 20 }).toEqual([]);
  });
}
