/** How far a list of requests can be paged: others decide how many requests are made to a key. */
import { afterAll, expect, test } from "vitest";
import { REACH } from "#cairnlog/engine/registry/requests/queries.js";
import { closeWorlds, failure, nodeSigner, openWorld, registration } from "../world.js";

afterAll(closeWorlds);

test("pages behind 100,000 requests are refused, and nothing is skipped for them", async () => {
  const { registry } = await openWorld();
  const { log, requestQueries } = registry;
  const signer = nodeSigner();
  await registry.keys.register(registration(signer));
  // A list that says that it is as long.
  const { row, rows } = Object.getPrototypeOf(log) as typeof log;
  const counts = { all: 1_000_000, open: 0, held: 0, accepted: 0, declined: 0 };
  log.row = (table, key) => (table === "requestCounts" ? (counts as never) : row.call(log, table, key)) as never;
  const skipped: number[] = [];
  log.rows = (table, start, end, window) => {
    skipped.push(window?.offset ?? 0);
    return rows.call(log, table, start, end, window) as never;
  };
  const list = (page: number) => requestQueries.list({ target: signer.fingerprint }, { page, perPage: 200 });
  expect(list(REACH / 200 + 1)).toMatchObject({ requests: [], total: 1_000_000 });
  expect(skipped).toEqual([REACH]);
  expect(await failure(() => list(REACH / 200 + 2))).toMatchObject({ code: "invalid-input" });
  expect(skipped).toEqual([REACH]);
});
