/**
 * What only a leader does, over several terms, with outsiders of each kind who never answer: in every term each of them is asked,
 * and when a term has ended nothing is under way. And how a node tells what it did.
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { LeaderTasks } from "#cairnlog/server/leader-tasks.js";
import { completeSettings } from "#cairnlog/server/settings/settings.js";
import { closeWorlds, newFolder, nodeSigner, openWorld, registration } from "../registry/world.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { append, hex, pending } from "../verify/ots/otsbytes.js";

afterAll(closeWorlds);
const closes: (() => unknown)[] = [];
afterAll(() => {
  for (const close of closes.splice(0)) close();
});

/** Somebody whom a leader asks. Without `answer` the request stays open until the leader gives it up. */
class Outsider {
  url = "";
  asked = 0;
  open = 0;
  answer: ((response: ServerResponse, method: string) => void) | null = null;

  async start(): Promise<void> {
    const server = createServer((request, response) => {
      request.resume();
      this.asked++;
      this.open++;
      response.on("close", () => this.open--);
      this.answer?.(response, request.method!);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    closes.push(() => server.close().closeAllConnections());
  }
}

/** A log with an anchor that a calendar has promised to complete, a witness, and an endpoint. */
async function scene(isHeld: () => boolean = () => true) {
  const [calendar, promising, witness, endpoint] = [new Outsider(), new Outsider(), new Outsider(), new Outsider()];
  const outsiders = { calendar, promising, witness, endpoint };
  for (const outsider of Object.values(outsiders)) await outsider.start();
  const pem = generatePrivateKey("ed25519");
  const { registry } = await openWorld(newFolder(), pem, { webhookAllowPrivate: true });
  let observers = 0;
  const observeSize = registry.log.observeSize.bind(registry.log);
  registry.log.observeSize = (observer) => {
    observers++;
    const unobserve = observeSize(observer);
    return () => {
      observers--;
      unobserve();
    };
  };
  const dataDir = newFolder();
  const witnesses = join(dataDir, "policy.txt");
  writeFileSync(witnesses, `witness W ${newNoteSigner("witness.example", 4).vkey} ${witness.url}\nquorum W\n`);
  const given = { dataDir, witnesses, otsCalendars: [calendar.url, promising.url], webhookAllowPrivate: true };
  const tasks = new LeaderTasks({
    registry,
    operator: operatorKey(pem),
    logName: "log.example",
    settings: { ...completeSettings(given), checkpointIntervalSeconds: 0.01 },
    logger: pino({ level: "silent" }),
    refuted() {},
    isHeld,
  });
  closes.push(() => tasks.close());
  const grow = () => registry.keys.register(registration(nodeSigner()));
  await registry.webhooks.subscribe({ url: endpoint.url }, `sha256:${"a".repeat(64)}`);
  await grow();
  return { tasks, grow, observers: () => observers, outsiders };
}

test("each term asks everybody, and leaves nothing under way when it ends", async () => {
  const { tasks, grow, observers, outsiders } = await scene();
  const all = Object.values(outsiders);
  const { calendar, promising, witness } = outsiders;
  // It remembers nothing of the log, which it is asked before a term begins.
  witness.answer = (response, method) => {
    if (method === "GET") response.writeHead(404).end();
  };
  // What is pending is asked for in each term.
  promising.answer = (response) => response.end(hex(append(Buffer.from("x")), "00", pending(promising.url)));
  calendar.answer = (response) => response.writeHead(503).end();
  await tasks.anchoring.anchor();
  [calendar.answer, promising.answer] = [null, null];
  const open = () => all.map(({ open }) => open);
  expect([open(), tasks.tlog, tasks.calendarFailures]).toEqual([[0, 0, 0, 0], null, 1]);
  for (let term = 1; term <= 2; term++) {
    const tlog = await tasks.begin();
    expect([tasks.tlog, observers()]).toEqual([tlog, 2]);
    // A promise, a checkpoint and an event.
    await expect.poll(open, { interval: 5 }).toEqual([0, 1, 1, 1]);
    await grow();
    const anchoring = tasks.anchoring.anchor();
    // And a digest, of both calendars.
    await expect.poll(open, { interval: 5 }).toEqual([1, 2, 1, 1]);
    const ended = tasks.end();
    await expect(anchoring).rejects.toMatchObject({ code: "closed" });
    await ended;
    await expect.poll(open, { interval: 5 }).toEqual([0, 0, 0, 0]);
    expect([tasks.tlog, observers()]).toEqual([null, 0]);
    // What a term that is over learns of the log asks nobody.
    const before = all.map(({ asked }) => asked);
    await grow();
    expect(all.map(({ asked }) => asked)).toEqual(before);
  }
});

test("what is delivered, and what calendars have failed, counts from the start on; without the lead nothing is delivered", async () => {
  let isHeld = true;
  const { tasks, grow, outsiders } = await scene(() => isHeld);
  const { endpoint, ...others } = outsiders;
  endpoint.answer = (response) => response.end();
  for (const other of Object.values(others)) other.answer = (response) => response.writeHead(503).end();
  const counted = () => [endpoint.asked, tasks.delivered, tasks.failed, tasks.calendarFailures];
  for (let term = 1; term <= 2; term++) {
    await tasks.begin();
    await grow();
    await expect(tasks.anchoring.anchor()).rejects.toMatchObject({ code: "calendars-unavailable" });
    // There was an event before the first term.
    const expected = [term + 1, term + 1, 0, 2 * term];
    await expect.poll(counted, { interval: 5 }).toEqual(expected);
    await tasks.end();
    expect(counted()).toEqual(expected);
  }
  isHeld = false;
  await tasks.begin();
  await grow();
  await expect.poll(counted, { interval: 5 }).toEqual([3, 3, 1, 4]);
  await tasks.end();
  expect(counted()).toEqual([3, 3, 1, 4]);
});
