/** How the parts of a service are closed, for any parts: some fail, some hang. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Opened } from "#cairnlog/server/closing.js";

const WAYS = ["at once", "later", "fails", "fails later", "hangs"] as const;
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
const parts = fc.array(fc.record({ isWork: fc.boolean(), way: fc.constantFrom(...WAYS) }), { maxLength: 7 });

test("work is closed first and the newest first; what it stands on only when all of it has ended; what hangs is named", async () => {
  await fc.assert(
    fc.asyncProperty(parts, async (all) => {
      const opened = new Opened();
      const names = all.map(({ isWork, way }, i) => `${isWork ? "work" : "foundation"} ${i}, ${way}`);
      const begun: string[] = [];
      const ended: string[] = [];
      /** Parts that had not ended when the next one was closed, although they do in time. */
      const early: string[] = [];
      for (const [i, { isWork, way }] of all.entries()) {
        const name = names[i]!;
        const close = async () => {
          begun.push(name);
          early.push(...begun.filter((other) => other !== name && !other.endsWith("hangs") && !ended.includes(other)));
          if (way === "hangs") return new Promise(() => {});
          // Foundations are still there for all work that is being closed.
          for (let turns = way.endsWith("later") ? 3 : 0; turns > 0; turns--)
            await new Promise((resolve) => setImmediate(resolve));
          ended.push(name);
          if (way.startsWith("fails")) throw name;
        };
        if (isWork) opened.addWork(name, close);
        else opened.addFoundation(name, close);
      }
      const observed: string[] = [];
      const before = timers();
      const hangs = all.some(({ way }) => way === "hangs");
      const { hanging, errors } = await opened.close(hangs ? 20 : 60_000, (name) => observed.push(name));

      const newestFirst = (prefix: string) => names.filter((name) => name.startsWith(prefix)).reverse();
      const [work, foundation] = [newestFirst("work"), newestFirst("foundation")];
      const isWorkStuck = work.some((name) => name.endsWith("hangs"));
      const firstStuck = foundation.findIndex((name) => name.endsWith("hangs"));
      const reached = isWorkStuck ? [] : firstStuck < 0 ? foundation : foundation.slice(0, firstStuck + 1);
      expect(observed).toEqual([...work, ...reached]);
      expect(begun).toEqual(observed);
      expect(new Set(hanging)).toEqual(new Set(observed.filter((name) => name.endsWith("hangs"))));
      expect(new Set(errors)).toEqual(new Set(observed.filter((name) => name.includes("fails"))));
      expect(new Set(ended)).toEqual(new Set(observed.filter((name) => !name.endsWith("hangs"))));
      // With 20 ms, the patience may end before some turns have.
      if (!hangs) expect(early).toEqual([]);
      expect(timers()).toBeLessThanOrEqual(before);
      // Nothing is closed twice.
      expect((await opened.close(1)).hanging).toEqual([]);
      expect(begun).toEqual(observed);
    }),
    { numRuns: 40 },
  );
});

test("work that takes long is waited for, but not by the work that is closed after it", async () => {
  const opened = new Opened();
  const steps: string[] = [];
  let endSlow = () => {};
  opened.addFoundation("foundation", () => steps.push("foundation"));
  opened.addWork("older", () => {
    steps.push("older");
    // Only now can the newer one end.
    setTimeout(endSlow, 20);
  });
  opened.addWork("newer", async () => {
    steps.push("newer");
    await new Promise<void>((resolve) => {
      endSlow = resolve;
    });
    steps.push("newer has ended");
  });
  // A twentieth of it is the patience with each.
  expect(await opened.close(2_000)).toEqual({ hanging: [], errors: [] });
  expect(steps).toEqual(["newer", "older", "newer has ended", "foundation"]);
});
