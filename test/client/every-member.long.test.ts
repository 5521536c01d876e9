/**
 * Every member of every answer that a client gets is changed, left out, added to and told twice: the client notices, or what
 * it returns is the same as without the lie, or the lie stands in the table of `docs/client.md`, which this file holds.
 */
import { beforeAll, expect, test } from "vitest";
import { STEPS } from "./believing/steps.js";
import { methodOf, Suite, tableOf } from "./believing/suite.js";

let suite: Suite;
beforeAll(async () => {
  suite = await Suite.begin();
});

const methods = [...new Set(Object.keys(STEPS).map(methodOf))];

test.each(methods)("%s believes nothing but what the table says", async (method) => {
  expect(await suite.believed(method)).toEqual(tableOf(method));
});

test("the table has no other methods", () => {
  expect(tableOf.methods().filter((name) => !methods.includes(name))).toEqual([]);
});

test("together they lie about every route of the service", async () => {
  expect(await suite.routesWithoutLie()).toEqual([
    "GET /api/v1/openapi.json",
    "GET /livez",
    "GET /metrics",
    "GET /readyz",
  ]);
});
