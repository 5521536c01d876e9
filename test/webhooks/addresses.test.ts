/** Many subscriptions whose names lead to one address: it gets four attempts at a time, and they delay nobody else. */
import type { ServerResponse } from "node:http";
import { pino } from "pino";
import { afterAll, expect, test } from "vitest";
import { AddressPlaces } from "#cairnlog/server/webhooks/address-places.js";
import { Deliverer } from "#cairnlog/server/webhooks/deliverer.js";
import { httpSender } from "#cairnlog/server/webhooks/send.js";
import { closeWorlds, openWorld, sha256 } from "../registry/world.js";
import { startReceiver } from "./receiver.js";

afterAll(closeWorlds);

const NAMES = 300;

test(`${NAMES} names of one address get four attempts at the same time, each of them in turn; another address is not delayed`, async () => {
  const world = await openWorld();
  const { registry } = world;
  const { webhooks } = registry;
  const open: ServerResponse[] = [];
  const hosts = new Set<string>();
  let most = 0;
  const receiver = await startReceiver();
  receiver.answer = (response, { headers }) => {
    if (headers.host!.startsWith("honest.")) {
      response.writeHead(204).end();
      hosts.add("honest");
      return;
    }
    open.push(response);
    most = Math.max(most, open.length);
    hosts.add(headers.host!);
  };
  const port = receiver.port;
  const owner = (i: number) => `sha256:${sha256(`${i}`)}`;
  for (let i = 0; i < NAMES; i++) await webhooks.subscribe({ url: `http://name${i}.example:${port}/` }, owner(i % 20));
  await webhooks.subscribe({ url: `http://honest.example:${port}/` }, owner(99));
  const places = new AddressPlaces();
  const local = httpSender({ allowPrivate: true, resolve: async () => ["127.0.0.1"] });
  const counted = httpSender({ allowPrivate: true, resolve: async () => ["127.0.0.1"], places });
  const deliverer = new Deliverer({
    webhooks,
    // The same machine plays another address.
    send: (request, signal) => (request.url.includes("honest.") ? local : counted)(request, signal),
    places,
    logger: pino({ level: "silent" }),
  });
  deliverer.start();
  await world.append({ event_type: "key_registration", payload: {} });
  await expect.poll(() => open.length).toBe(4);
  await expect.poll(() => hosts.has("honest")).toBe(true);
  // Four hang. As they end, every other one gets its turn.
  while (hosts.size < NAMES + 1) {
    await expect.poll(() => open.length).toBeGreaterThan(0);
    open.shift()!.writeHead(204).end();
  }
  for (const response of open) response.writeHead(204).end();
  await expect.poll(() => deliverer.waiting).toBe(0);
  expect(most).toBe(4);
  expect(deliverer.failed).toBe(0);
  expect(deliverer.delivered).toBe(NAMES + 1);
  await deliverer.stop();
});
