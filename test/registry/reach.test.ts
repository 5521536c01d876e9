/** How far lists of rows can be paged: others decide how long they are. */
import { afterAll, expect, test } from "vitest";
import { closeWorlds, failure, nodeSigner, openWorld, registration, type World } from "./world.js";

const REACH = 100_000;

afterAll(closeWorlds);

const PER_PAGE = 200;
const TOTAL = 1_000_000;

interface Page {
  readonly total: number;
}
const LISTS: Readonly<Record<string, (world: World, fingerprint: string, page: number) => Page>> = {
  requests: ({ registry }, target, page) => registry.requestQueries.list({ target, page, per_page: PER_PAGE }),
  "trust configurations": ({ registry }, _, page) => registry.trustConfigs.list({ page, per_page: PER_PAGE }),
};

test.each(Object.entries(LISTS))(
  "pages of %s behind 100,000 are refused, and nothing is skipped for them",
  async (_, list) => {
    const world = await openWorld();
    const { log } = world.registry;
    const signer = nodeSigner();
    await world.registry.keys.register(registration(signer));
    // Lists that say that they are as long.
    const { row, rows } = Object.getPrototypeOf(log) as typeof log;
    const counts = { all: TOTAL, open: 0, held: 0, accepted: 0, declined: 0 };
    log.row = (table, key) => {
      if (table === "requestCounts") return counts as never;
      if (table === "trustConfigHeads") return { id: TOTAL, count: TOTAL } as never;
      return row.call(log, table, key) as never;
    };
    const skipped: number[] = [];
    log.rows = (table, start, end, window) => {
      skipped.push(window?.offset ?? 0);
      return rows.call(log, table, start, end, window) as never;
    };
    const page = (number: number) => list(world, signer.fingerprint, number);
    expect(page(REACH / PER_PAGE + 1)).toMatchObject({ total: TOTAL });
    expect((await failure(() => page(REACH / PER_PAGE + 2))).code).toBe("invalid-input");
    // Behind the end there is nothing, which is no error.
    expect(page(TOTAL)).toMatchObject({ total: TOTAL });
    expect(skipped).toEqual([REACH]);
  },
);
