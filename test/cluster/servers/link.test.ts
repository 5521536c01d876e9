/** A link that is cut because of what it is about to pass. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Link } from "./link.js";

let server: Server;
let accepted: Promise<Socket>;
let link: Link;
let client: Socket;
const seen: string[] = [];
const arrived: string[] = [];

beforeEach(async () => {
  seen.length = arrived.length = 0;
  server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  accepted = once(server, "connection").then(([socket]) => {
    (socket as Socket).on("data", (data) => arrived.push(data.toString())).on("error", () => {});
    return socket as Socket;
  });
  link = await Link.open((server.address() as AddressInfo).port, () => ({
    sent: (chunk) => {
      seen.push(chunk.toString());
      if (chunk.toString() === "late") link.cut();
    },
    received: () => {},
  }));
  client = connect({ port: link.port, host: "127.0.0.1", noDelay: true });
  client.on("error", () => {});
  await accepted;
});
afterEach(() => {
  client.destroy();
  link.close();
  server.close();
});

test("what an observer cuts the link for passes when it is healed, once, and before what comes after it", async () => {
  client.write("late");
  await expect.poll(() => seen).toEqual(["late"]);
  client.write("later");
  // Another connection passes nothing either.
  const other = connect({ port: link.port, host: "127.0.0.1" });
  await once(other, "connect");
  other.destroy();
  expect(arrived).toEqual([]);
  link.heal();
  await expect.poll(() => arrived.join("")).toBe("latelater");
  expect(seen).toEqual(["late", "later"]);
});

test("what was held never arrives if the connections are ended first", async () => {
  client.write("late");
  await expect.poll(() => seen).toEqual(["late"]);
  const ended = once(await accepted, "close");
  link.reset();
  link.heal();
  await ended;
  expect(arrived).toEqual([]);
});
