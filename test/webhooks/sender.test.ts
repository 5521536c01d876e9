/** Deliveries are sent by a thread of their own: verdicts, deadlines and places come through its port. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { getPriority } from "node:os";
import { promisify } from "node:util";
import { afterEach, expect, test } from "vitest";
import type { AttemptResult } from "#cairnlog/server/webhooks/send.js";
import { Sender } from "#cairnlog/server/webhooks/sender.js";
import { startReceiver } from "./receiver.js";

const senders: Sender[] = [];
afterEach(async () => {
  for (const sender of senders.splice(0)) await sender.close();
});

function newSender(allowPrivate = true): Sender {
  const sender = new Sender(allowPrivate);
  senders.push(sender);
  return sender;
}

const never = new AbortController().signal;
const request = (url: string) => ({ url, headers: { "content-type": "application/json" }, body: '{"a":1}' });
const threads = () => readdirSync("/proc/self/task");

test("a verdict is the receiver's, and what was sent arrives whole", async () => {
  const receiver = await startReceiver();
  const sender = newSender();
  expect(await sender.send(request(receiver.url), never)).toEqual({ isDelivered: true, reason: "204" });
  expect(receiver.received.map(({ body }) => body.toString())).toEqual(['{"a":1}']);
  receiver.answer = (response) => response.writeHead(503, { "retry-after": "7" }).end();
  expect(await sender.send(request(receiver.url), never)).toEqual({ isDelivered: false, reason: "503", retryAfter: 7 });
});

test("addresses that are not public are not called", async () => {
  const receiver = await startReceiver();
  expect(await newSender(false).send(request(receiver.url), never)).toMatchObject({ reason: "private-address" });
  expect(receiver.connections).toBe(0);
});

test("an attempt that is given up ends in the thread, too", async () => {
  const receiver = await startReceiver();
  const closed = new Promise((resolve) => {
    receiver.answer = (response) => void response.on("close", resolve);
  });
  const controller = new AbortController();
  const verdict = newSender().send(request(receiver.url), controller.signal);
  await expect.poll(() => receiver.received.length).toBe(1);
  controller.abort();
  expect(await verdict).toEqual({ isDelivered: false, reason: "timeout" });
  await closed;
});

test("an address that has four attempts is full until one of them ends, and every end is reported", async () => {
  const receiver = await startReceiver();
  const open: ServerResponse[] = [];
  receiver.answer = (response) => void open.push(response);
  const sender = newSender();
  const freed: string[] = [];
  sender.places.freed = (place) => freed.push(place);
  const four = Array.from({ length: 4 }, () => sender.send(request(receiver.url), never));
  await expect.poll(() => open.length).toBe(4);
  const fifth = await sender.send(request(receiver.url), never);
  expect(fifth).toEqual({ isDelivered: false, reason: "busy", busy: "127.0.0.1" });
  expect(sender.places.isFull("127.0.0.1")).toBe(true);
  for (const response of open) response.writeHead(204).end();
  expect((await Promise.all(four)).map(({ isDelivered }) => isDelivered)).toEqual([true, true, true, true]);
  await expect.poll(() => freed).toEqual(["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"]);
  expect(sender.places.isFull("127.0.0.1")).toBe(false);
});

test("an address at which nothing is under way is not full, however attempts and refusals have crossed", async () => {
  const receiver = await startReceiver();
  const sender = newSender();
  const url = receiver.url.replace("127.0.0.1", "localhost");
  for (let round = 0; round < 60; round++) {
    const verdicts = await Promise.all(Array.from({ length: 12 }, () => sender.send(request(url), never)));
    expect(verdicts.some(({ isDelivered }) => isDelivered)).toBe(true);
    await expect.poll(() => ["127.0.0.1", "0:0:0:0::/64"].some(sender.places.isFull), { interval: 1 }).toBe(false);
  }
});

test("an address that became free before it was found full is told again: nobody waits for it", async () => {
  const receiver = await startReceiver();
  receiver.answer = () => {};
  const sender = newSender();
  const ends = new AbortController();
  const four = Array.from({ length: 4 }, () => sender.send(request(receiver.url), ends.signal));
  await expect.poll(() => receiver.received.length).toBe(4);
  // One message of orders: four have the places at the other address of the name, the fifth finds both full, and while its
  // refusal is on its way through the socket, the first four end.
  const named = Array.from({ length: 5 }, () =>
    sender.send(request(receiver.url.replace("127.0.0.1", "localhost")), never),
  );
  ends.abort();
  expect(await named[4]).toMatchObject({ busy: "127.0.0.1" });
  expect((await Promise.all(four)).map(({ reason }) => reason)).toEqual(Array(4).fill("timeout"));
  await expect.poll(() => sender.places.isFull("127.0.0.1")).toBe(false);
});

test("when its thread ends, every attempt under way has failed, places are free for those that wait, and the next attempt has a new thread", async () => {
  const receiver = await startReceiver();
  receiver.answer = () => {};
  const sender = newSender();
  const freed: string[] = [];
  sender.places.freed = (place) => freed.push(place);
  const under = Array.from({ length: 4 }, () => sender.send(request(receiver.url), never));
  await expect.poll(() => receiver.received.length).toBe(4);
  expect(await sender.send(request(receiver.url), never)).toMatchObject({ busy: "127.0.0.1" });
  await sender.close();
  const ended: AttemptResult = { isDelivered: false, reason: "the sending thread has ended" };
  expect(await Promise.all(under)).toEqual([ended, ended, ended, ended]);
  expect([freed, sender.places.isFull("127.0.0.1")]).toEqual([["127.0.0.1"], false]);
  receiver.answer = (response) => response.writeHead(204).end();
  expect(await sender.send(request(receiver.url), never)).toMatchObject({ isDelivered: true });
});

test("while the system gives no thread, every attempt fails, and later ones are made", async () => {
  const receiver = await startReceiver();
  const script = `
    import { execFileSync } from "node:child_process";
    import { readFileSync } from "node:fs";
    import { Sender } from "#cairnlog/server/webhooks/sender.js";
    const limit = (bytes) => execFileSync("prlimit", ["--pid", String(process.pid), "--as=" + bytes + ":"]);
    const sender = new Sender(true);
    const send = () => sender.send(${JSON.stringify(request(receiver.url))}, new AbortController().signal);
    // No room for the stack of another thread.
    limit((Number(/VmSize:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]) + 1024) * 1024);
    const refused = await send();
    limit("unlimited");
    console.log(JSON.stringify([refused, await send()]));
    await sender.close();`;
  const args = ["--input-type=module", "--eval", script];
  const child = promisify(execFile)(process.execPath, args, { encoding: "utf8" });
  expect(JSON.parse((await child).stdout)).toEqual([
    { isDelivered: false, reason: "no thread can be begun" },
    { isDelivered: true, reason: "204" },
  ]);
});

test("there is no thread before the first delivery; where the system can do that, it has a lower priority", async () => {
  const before = new Set(threads());
  const sender = newSender();
  expect(threads().filter((thread) => !before.has(thread))).toEqual([]);
  const receiver = await startReceiver();
  await sender.send(request(receiver.url), never);
  // Field 19 of stat(5); the name of the thread, which may hold spaces, ends with the last parenthesis.
  const niceness = threads()
    .filter((thread) => !before.has(thread))
    .map((thread) => Number(readFileSync(`/proc/self/task/${thread}/stat`, "utf8").split(") ").at(-1)!.split(" ")[16]));
  expect(niceness).toContain(Math.min(getPriority() + 10, 19));
});
