/** The log of a demonstration is kept as long as the process lasts, and nowhere else, whatever comes of it later. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { sparingStore } from "#cairnlog/server/client/base/demonstration.js";
import { memoryStore, type State } from "#cairnlog/server/client/index.js";

const stateOf = (operatorKey: string) => ({ operatorKey, head: null }) as unknown as State;

/** A service whose health says whether it is a demonstration, and that can be away. */
async function service(demonstration: boolean) {
  const shown = { isAway: false, asked: 0 };
  const server = createServer((_, response) => {
    shown.asked++;
    const health = { status: "ok", version: "1.0.0", ...(demonstration ? { demonstration } : {}) };
    response.writeHead(shown.isAway ? 503 : 200, { "content-type": "application/json" }).end(JSON.stringify(health));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, shown };
}

test.each([true, false])("where health says demonstration: %s", async (demonstration) => {
  const { url, shown } = await service(demonstration);
  const lasting = memoryStore();
  const met: boolean[] = [];
  const store = sparingStore(lasting, url, fetch, (_, isDemonstration) => met.push(isDemonstration));
  for (const name of ["first", "second", "third"]) {
    await store.save(stateOf(name));
    expect(await store.load()).toEqual(stateOf(name));
    expect(await lasting.load()).toEqual(demonstration ? undefined : stateOf(name));
    // It is asked, and told of, once.
    shown.isAway = true;
  }
  expect([met, shown.asked]).toEqual([[demonstration], 1]);
});

test("a log that is known already is asked nothing, and stays", async () => {
  const { url, shown } = await service(true);
  const lasting = memoryStore();
  await lasting.save(stateOf("known"));
  const met: unknown[] = [];
  const store = sparingStore(lasting, url, fetch, (state) => met.push(state));
  await store.save(stateOf("newer"));
  expect([await lasting.load(), met, shown.asked]).toEqual([stateOf("newer"), [], 0]);
});
