/** Resolving names with a local name server. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dnsResolver } from "#cairnlog/server/webhooks/public-addresses.js";

const TYPES = { A: 1, AAAA: 28 } as const;
const NXDOMAIN = 3;
/** Name → record type → address bytes. Other names do not exist; `silent.example` gets no answer. */
const ZONE: Readonly<Record<string, Readonly<Record<number, number[]>>>> = {
  "both.example": { [TYPES.A]: [93, 184, 215, 14], [TYPES.AAAA]: [0x26, 6, 0x47, 0, ...Array(10).fill(0), 0x11, 0x11] },
  "four.example": { [TYPES.A]: [10, 0, 0, 1] },
  "six.example": { [TYPES.AAAA]: [...Array(15).fill(0), 1] },
};

let server: Socket;
let servers: string[];
let asked = 0;
beforeAll(async () => {
  server = createSocket("udp4").bind(0, "127.0.0.1");
  await once(server, "listening");
  server.on("message", (query, from) => {
    asked++;
    const reply = answer(query);
    if (reply) server.send(reply, from.port, from.address);
  });
  servers = [`127.0.0.1:${server.address().port}`];
});
afterAll(() => server.close());

/** RFC 1035 §4: header, the question unchanged, at most one answer that refers to its name. */
function answer(query: Buffer): Buffer | undefined {
  const labels: string[] = [];
  let end = 12;
  for (; query[end]; end += query[end]! + 1) labels.push(query.toString("latin1", end + 1, end + 1 + query[end]!));
  const question = query.subarray(12, end + 5);
  const name = labels.join(".").toLowerCase();
  if (name === "silent.example") return undefined;
  const address = ZONE[name]?.[query.readUInt16BE(end + 1)];
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | (ZONE[name] ? 0 : NXDOMAIN), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(address ? 1 : 0, 6);
  if (!address) return Buffer.concat([header, question]);
  const record = Buffer.from([0xc0, 12, 0, address.length === 4 ? 1 : 28, 0, 1, 0, 0, 0, 60, 0, address.length]);
  return Buffer.concat([header, question, record, Buffer.from(address)]);
}

test.each([
  ["both.example", ["93.184.215.14", "2606:4700::1111"]],
  ["four.example", ["10.0.0.1"]],
  ["six.example", ["::1"]],
])("%s is %j", async (name, addresses) => {
  expect(await dnsResolver(servers)(name, new AbortController().signal)).toEqual(addresses);
});

test("a name that does not exist is refused with the name server's reason", async () => {
  await expect(dnsResolver(servers)("nothing.example", new AbortController().signal)).rejects.toMatchObject({
    code: "ENOTFOUND",
  });
});

test("this machine's own name asks nobody", async () => {
  const before = asked;
  expect(await dnsResolver(servers)("localhost", new AbortController().signal)).toEqual(["127.0.0.1", "::1"]);
  expect(asked).toBe(before);
});

test("a name server that never answers is given up with the attempt", async () => {
  const controller = new AbortController();
  const before = asked;
  const pending = dnsResolver(servers)("silent.example", controller.signal);
  await expect.poll(() => asked, { interval: 1 }).toBeGreaterThan(before);
  controller.abort();
  await expect(pending).rejects.toMatchObject({ code: "ECANCELLED" });
});
