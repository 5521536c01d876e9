/** The address of a client, and the addresses that a limit counts together. */

import { describe, expect, test } from "vitest";
import { clientAddress, limitKey, type Network, parseNetwork } from "#cairnlog/server/http/transport/client-address.js";

const trusted = (...texts: string[]): Network[] => texts.map((text) => parseNetwork(text)!);

describe("clientAddress", () => {
  const proxies = trusted("10.0.0.0/8", "fd00::/8", "192.0.2.7");
  test.each([
    ["198.51.100.1", "203.0.113.5", "198.51.100.1"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", "203.0.113.5", "203.0.113.5"],
    ["10.0.0.1", "203.0.113.5, 198.51.100.9", "198.51.100.9"],
    ["10.0.0.1", "203.0.113.5,10.1.2.3 , 192.0.2.7", "203.0.113.5"],
    ["10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["10.0.0.1", "203.0.113.5, junk", "10.0.0.1"],
    ["10.0.0.1", "203.0.113.5, 10.0.0.9, ", "10.0.0.1"],
    ["10.0.0.1", "0xcb.0.113.5", "10.0.0.1"],
    ["10.0.0.1", "203.0.113.5:5555", "203.0.113.5"],
    ["10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"],
    ["0000:0000:0000:0000:0000:ffff:0a00:0001", "203.0.113.5", "203.0.113.5"],
    ["fd00:0000:0000:0000:0000:0000:0000:0001", "2001:DB8::A", "2001:db8::a"],
    ["", "203.0.113.5", "unknown"],
    // A trusted address is one address, and not its neighbours.
    ["192.0.2.7", "203.0.113.5", "203.0.113.5"],
    ["192.0.2.6", "203.0.113.5", "192.0.2.6"],
    ["10.0.0.1", "x[2001:db8::1]:443", "10.0.0.1"],
    ["10.0.0.1", "[2001:db8::1]:443x", "10.0.0.1"],
    ["10.0.0.1", "[2001:db8::1]", "2001:db8::1"],
    ["10.0.0.1", "x203.0.113.5:5555", "10.0.0.1"],
    ["10.0.0.1", "203.0.113.5:5555x", "10.0.0.1"],
    ["10.0.0.1", "203.0.113.5:", "10.0.0.1"],
  ])("socket %s, X-Forwarded-For %j: %s", (socket, forwarded, client) => {
    expect(clientAddress(socket, forwarded, proxies)).toBe(client);
  });

  test.each([
    ["198.51.100.1", "198.51.100.1"],
    ["::ffff:198.51.100.1", "198.51.100.1"],
    ["2001:DB8:0::1", "2001:db8::1"],
    ["", "unknown"],
    ["x198.51.100.1", "unknown"],
  ])("without trusted proxies it is the socket's: %s", (socket, client) => {
    expect(clientAddress(socket, "203.0.113.5", [])).toBe(client);
  });

  test.each([
    ["::ffff:10.0.0.0/104", "10.255.0.1", "11.0.0.1"],
    ["::ffff:0:0/96", "192.0.2.6", "2001:db8::1"],
    ["2001:db8::/112", "2001:db8::6", "10.0.0.1"],
    ["10.0.0.0/8", "::ffff:10.0.0.1", "::ffff:11.0.0.1"],
  ])("a network of IPv4 may be written as one of IPv6: %s", (network, inside, outside) => {
    expect(clientAddress(inside, "203.0.113.5", trusted(network))).toBe("203.0.113.5");
    expect(clientAddress(outside, "203.0.113.5", trusted(network))).not.toBe("203.0.113.5");
  });

  test("a trusted IPv6 address is one address, too", () => {
    const one = trusted("2001:db8::7");
    expect(clientAddress("2001:db8::7", "203.0.113.5", one)).toBe("203.0.113.5");
    for (const neighbour of ["2001:db8::6", "2001:db8::8"])
      expect(clientAddress(neighbour, "203.0.113.5", one)).toBe(neighbour);
  });
});

test("parseNetwork accepts only addresses and networks", () => {
  for (const text of ["10.0.0.0/8", "::/0", "192.0.2.1", "2001:db8::1"]) expect(parseNetwork(text)).toBeDefined();
  for (const text of ["", "10", "10.0.0.0/33", "::/129", "host", "10.0.0.0/", "1.2.3"])
    expect(parseNetwork(text)).toBeUndefined();
});

test("limitKey is the IPv4 address or the /64", () => {
  expect(limitKey("192.0.2.1")).toBe("192.0.2.1");
  expect(limitKey("2001:db8:a:1:ffff::1")).toBe("2001:db8:a:1::/64");
  expect(limitKey("::1")).toBe("0:0:0:0::/64");
  expect(limitKey("2001:db8:0:1::1")).toBe(limitKey("2001:db8:0:1:ffff:ffff:ffff:ffff"));
  expect(limitKey("2001:db8:0:1::1")).not.toBe(limitKey("2001:db8:0:2::1"));
});
