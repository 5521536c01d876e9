/** The addresses that are contacted: all known ways to make the service call an address that is not public. */

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer as createTcpServer } from "node:net";
import { beforeEach, describe, expect, test } from "vitest";
import { isPublicAddress, isVisiblyPrivate } from "#cairnlog/engine/registry/webhooks/publicaddress.js";
import { AddressPlaces, addressBlock, Held } from "#cairnlog/server/webhooks/address-places.js";
import { type AttemptResult, httpSender } from "#cairnlog/server/webhooks/send.js";
import { type Receiver, startReceiver } from "./receiver.js";

const MAX_AT_ADDRESS = 4;

const PUBLIC = "93.184.215.14";
const BLOCKED: AttemptResult = { isDelivered: false, reason: "private-address" };
const request = (url: string) => ({ url, headers: { "content-type": "application/json" }, body: "{}" });
const noSignal = new AbortController().signal;

let receiver: Receiver;
beforeEach(async () => {
  receiver = await startReceiver();
});

describe("addresses", () => {
  const priv = [
    ["this host", "0.0.0.0"],
    ["this network", "0.1.2.3"],
    ["loopback", "127.0.0.1"],
    ["loopback, elsewhere in it", "127.255.255.254"],
    ["private 10/8", "10.0.0.1"],
    ["private 172.16/12", "172.31.255.255"],
    ["private 192.168/16", "192.168.1.1"],
    ["carrier-grade NAT", "100.64.0.1"],
    ["link-local, where clouds keep credentials", "169.254.169.254"],
    ["protocol assignments", "192.0.0.1"],
    ["documentation", "192.0.2.1"],
    ["benchmarking", "198.18.0.1"],
    ["multicast", "224.0.0.1"],
    ["reserved", "240.0.0.1"],
    ["broadcast", "255.255.255.255"],
    ["IPv6 unspecified", "::"],
    ["IPv6 loopback", "::1"],
    ["IPv4-mapped loopback", "::ffff:127.0.0.1"],
    ["IPv4-mapped loopback in hex", "::ffff:7f00:1"],
    ["IPv4-mapped private", "::ffff:10.0.0.1"],
    ["IPv4-compatible loopback", "::7f00:1"],
    ["IPv4-translated", "::ffff:0:127.0.0.1"],
    ["NAT64 of loopback", "64:ff9b::7f00:1"],
    ["NAT64 for local use", "64:ff9b:1::1"],
    ["6to4 of loopback", "2002:7f00:1::"],
    ["Teredo", "2001::1"],
    ["IPv6 documentation", "2001:db8::1"],
    ["unique local", "fd00::1"],
    ["IPv6 link-local", "fe80::1"],
    ["site-local", "fec0::1"],
    ["IPv6 multicast", "ff02::1"],
    ["discard only", "100::1"],
    ["no address", "example.org"],
    ["leading zeros", "0177.0.0.1"],
    ["nothing", ""],
  ];
  test.each(priv)("%s is not public: %s", (_, address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each([PUBLIC, "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"])("%s is public", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});

describe("URLs of this machine and its networks are never connected to", () => {
  const hosts = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "１２７.０.０.１",
    "127%2e0.0.1",
    "0",
    "0.0.0.0",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[64:ff9b::127.0.0.1]",
    "[fe80::1]",
    "[fd00::1]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "anything.localhost",
    "169.254.169.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "224.0.0.1",
  ];
  test.each(hosts)("%s", async (host) => {
    const url = `http://${host}:${receiver.port}/`;
    expect(isVisiblyPrivate(new URL(url).hostname)).toBe(true);
    expect(await httpSender({ allowPrivate: false })(request(url), noSignal)).toEqual(BLOCKED);
    expect(receiver.connections).toBe(0);
  });

  test("unless the operator allows it", async () => {
    const verdict = await httpSender({ allowPrivate: true })(request(receiver.url), noSignal);
    expect(verdict).toEqual({ isDelivered: true, reason: "204" });
    const byName = await httpSender({ allowPrivate: true })(
      request(`http://hook.localhost:${receiver.port}/`),
      noSignal,
    );
    expect(byName).toEqual({ isDelivered: true, reason: "204" });
    expect(receiver.received[1]!.headers.host).toBe(`hook.localhost:${receiver.port}`);
  });
});

describe("names", () => {
  const url = () => `http://rebinding.example:${receiver.port}/`;

  test.each([
    ["a private address", ["127.0.0.1"]],
    ["a private IPv6 address", ["::1"]],
    ["an IPv4-mapped one", ["::ffff:127.0.0.1"]],
    ["a public one and a private one", [PUBLIC, "127.0.0.1"]],
    ["something that is no address", ["rebinding.example"]],
  ])("that resolve to %s are not connected to", async (_, addresses) => {
    const send = httpSender({ allowPrivate: false, resolve: async () => addresses });
    expect(await send(request(url()), noSignal)).toEqual(BLOCKED);
    expect(receiver.connections).toBe(0);
  });

  test("that resolve to a public address first and to a private one second are caught at the second", async () => {
    const answers = [[PUBLIC], ["127.0.0.1"]];
    const controller = new AbortController();
    const send = httpSender({
      allowPrivate: false,
      resolve: async (name) => {
        if (name === "ipv4only.arpa") return [];
        // The first attempt ends before any packet leaves this machine.
        if (answers.length === 2) controller.abort();
        return answers.shift()!;
      },
    });
    expect(await send(request(url()), controller.signal)).toEqual({ isDelivered: false, reason: "timeout" });
    expect(await send(request(url()), noSignal)).toEqual(BLOCKED);
    expect(answers).toEqual([]);
    expect(receiver.connections).toBe(0);
  });

  test("that end up elsewhere than at what was checked get nothing written", async () => {
    const lying = Object.assign([PUBLIC], { slice: () => ["127.0.0.1"] });
    const send = httpSender({ allowPrivate: false, resolve: async () => lying });
    expect(await send(request(url()), noSignal)).toEqual(BLOCKED);
    expect(receiver.received).toEqual([]);
  });

  test("without addresses fail", async () => {
    const send = httpSender({ allowPrivate: true, resolve: async () => [] });
    expect(await send(request(url()), noSignal)).toEqual({ isDelivered: false, reason: "unknown-host" });
    const failing = Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
    const lost = httpSender({ allowPrivate: true, resolve: () => Promise.reject(failing) });
    expect(await lost(request(url()), noSignal)).toEqual({ isDelivered: false, reason: "ENOTFOUND" });
  });

  test("are connected to at the address that was checked, whichever it is", async () => {
    const send = httpSender({ allowPrivate: true, resolve: async () => ["127.0.0.1"] });
    expect(await send(request(`${url()}a/path?and=query`), noSignal)).toEqual({ isDelivered: true, reason: "204" });
    expect(receiver.received[0]).toMatchObject({
      path: "/a/path?and=query",
      headers: { host: `rebinding.example:${receiver.port}`, "content-length": "2" },
    });
  });
});

describe("answers", () => {
  const send = httpSender({ allowPrivate: true });

  test.each([
    [200, true],
    [201, true],
    [204, true],
    [299, true],
    [304, false],
    [400, false],
    [401, false],
    [404, false],
    [429, false],
    [500, false],
    [503, false],
  ])("%i: delivered is %s", async (status, isDelivered) => {
    receiver.answer = (response) => response.writeHead(status).end();
    expect(await send(request(receiver.url), noSignal)).toEqual({ isDelivered, reason: `${status}` });
  });

  test.each([301, 302, 303, 307, 308])("%i is not followed, wherever it leads", async (status) => {
    const inside = await startReceiver();
    receiver.answer = (response) => response.writeHead(status, { location: `${inside.url}/admin` }).end();
    expect(await send(request(receiver.url), noSignal)).toEqual({ isDelivered: false, reason: `${status}` });
    expect(inside.connections).toBe(0);
  });

  test("that are gone for good say so", async () => {
    receiver.answer = (response) => response.writeHead(410).end();
    expect(await send(request(receiver.url), noSignal)).toEqual({ isDelivered: false, reason: "410", isGone: true });
  });

  test.each([
    ["120", 120],
    ["86401", 86_400],
    [new Date(Date.now() + 10 * 86_400_000).toUTCString(), 86_400],
    ["0", undefined],
    ["-5", undefined],
    ["soon", undefined],
    [new Date(0).toUTCString(), undefined],
  ])("with Retry-After %s ask to be left alone for %s seconds", async (value, retryAfter) => {
    receiver.answer = (response) => response.writeHead(503, { "retry-after": value }).end();
    const verdict = await send(request(receiver.url), noSignal);
    expect(verdict).toEqual({ isDelivered: false, reason: "503", ...(retryAfter && { retryAfter }) });
  });

  test("that never come end with the attempt", async () => {
    const controller = new AbortController();
    receiver.answer = () => controller.abort();
    expect(await send(request(receiver.url), controller.signal)).toEqual({ isDelivered: false, reason: "timeout" });
  });

  test("that are no HTTP are failures", async () => {
    const server = createTcpServer((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n")).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const verdict = await send(request(`http://127.0.0.1:${port}/`), noSignal);
    expect(verdict).toMatchObject({ isDelivered: false, reason: expect.stringMatching(/^HPE_/) });
    server.close();
  });

  test("nobody listens: a failure", async () => {
    const verdict = await send(request("http://127.0.0.1:1/"), noSignal);
    expect(verdict).toEqual({ isDelivered: false, reason: "ECONNREFUSED" });
  });

  test("plain HTTP where TLS is meant is a failure, and nothing is sent over it", async () => {
    const verdict = await send(request(`https://127.0.0.1:${receiver.port}/`), noSignal);
    expect(verdict.isDelivered).toBe(false);
    expect(receiver.received).toEqual([]);
  });
});

describe("an address", () => {
  test("gets four attempts at the same time, by whatever names and from whomever", async () => {
    const open: (() => void)[] = [];
    let most = 0;
    receiver.answer = (response) => {
      open.push(() => response.writeHead(204).end());
      most = Math.max(most, open.length);
    };
    const places = new AddressPlaces();
    const send = httpSender({ allowPrivate: true, resolve: async () => ["127.0.0.1"], places });
    const attempts = Array.from({ length: 30 }, (_, i) =>
      send(request(`http://name${i}.example:${receiver.port}/`), noSignal),
    );
    await expect.poll(() => open.length).toBe(4);
    expect(places.isFull("127.0.0.1")).toBe(true);
    // Those that found no place have sent nothing, and have not failed either.
    const mapped = await httpSender({ allowPrivate: true, places })(
      request(`http://[::ffff:127.0.0.1]:${receiver.port}/`),
      noSignal,
    );
    expect(mapped).toEqual({ isDelivered: false, reason: "busy", busy: "127.0.0.1" });
    const literal = await httpSender({ allowPrivate: true, places })(request(receiver.url), noSignal);
    expect(literal.busy).toBe("127.0.0.1");
    for (const end of open.splice(0)) end();
    const verdicts = await Promise.all(attempts);
    expect(verdicts.filter(({ isDelivered }) => isDelivered)).toHaveLength(4);
    expect(verdicts.filter(({ busy }) => busy === "127.0.0.1")).toHaveLength(26);
    expect(places.isFull("127.0.0.1")).toBe(false);
    expect(most).toBe(4);
  });

  test("that was not connected to is free at once, while the one that was is taken until the end", () => {
    const places = new AddressPlaces();
    const full = () => ["127.0.0.1", "127.0.0.2"].map((address) => places.isFull(address));
    const attempts = Array.from({ length: MAX_AT_ADDRESS }, () => new Held(places));
    for (const held of attempts) {
      expect(held.enter(["127.0.0.1", "127.0.0.2"])).toHaveLength(2);
      expect(held.keep("127.0.0.1")).toBe(true);
    }
    expect(full()).toEqual([true, false]);
    for (const held of attempts) held.leave();
    expect(full()).toEqual([false, false]);
  });

  test.each([0, 1])("that has no place leaves the others of its name to be tried, alone: number %i", async (full) => {
    const addresses = ["127.0.0.1", "127.0.0.2"];
    const other = await startReceiver("127.0.0.2", receiver.port);
    const places = new AddressPlaces();
    for (let taken = 0; taken < MAX_AT_ADDRESS; taken++) places.enter(addressBlock(addresses[full]!));
    const send = httpSender({ allowPrivate: true, resolve: async () => addresses, places });
    expect(await send(request(`http://name.example:${receiver.port}/`), noSignal)).toMatchObject({ isDelivered: true });
    expect([receiver.connections, other.connections]).toEqual(full ? [1, 0] : [0, 1]);
  });

  test("whose connection is seen late, because this machine is busy, is not given up for another one", async () => {
    const resolve = async () => {
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400));
      return ["127.0.0.1", "127.0.0.3"];
    };
    const send = httpSender({ allowPrivate: true, resolve });
    expect(await send(request(`http://name.example:${receiver.port}/`), noSignal)).toMatchObject({ isDelivered: true });
  });

  test("is not taken by a name that is resolved after its attempt has ended", async () => {
    const places = new AddressPlaces();
    const resolvers: (() => void)[] = [];
    const resolve = () => new Promise<string[]>((answer) => resolvers.push(() => answer(["127.0.0.1"])));
    const send = httpSender({ allowPrivate: true, resolve, places });
    const ends = new AbortController();
    const attempts = Array.from({ length: 2 * MAX_AT_ADDRESS }, () =>
      send(request(`http://name.example:${receiver.port}/`), ends.signal),
    );
    ends.abort();
    for (const { reason } of await Promise.all(attempts)) expect(reason).toBe("timeout");
    for (const answer of resolvers) answer();
    await new Promise((later) => setImmediate(later));
    expect(places.isFull("127.0.0.1")).toBe(false);
    expect(resolvers).toHaveLength(2 * MAX_AT_ADDRESS);
    expect(receiver.connections).toBe(0);
  });

  test("of IPv6 is a /64; IPv4 in IPv6 is IPv4", () => {
    expect(addressBlock("2606:4700::1")).toBe(addressBlock("2606:4700:0:0:ffff::2"));
    expect(addressBlock("2606:4700::1")).not.toBe(addressBlock("2606:4700:0:1::1"));
    expect(addressBlock("::ffff:1.2.3.4")).toBe("1.2.3.4");
  });
});
