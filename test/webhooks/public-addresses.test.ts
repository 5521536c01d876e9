/** Addresses that look public and are not: this machine's own, and those by which NAT64 leads back inside. */
import ipaddr from "ipaddr.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import { isPublicAddress } from "#cairnlog/engine/registry/webhooks/publicaddress.js";
import { PublicAddresses } from "#cairnlog/server/webhooks/public-addresses.js";
import { httpSender } from "#cairnlog/server/webhooks/send.js";

const OWN = ["93.184.215.14", "2606:4700::1"];
const noSignal = new AbortController().signal;

afterEach(() => {
  vi.useRealTimers();
});

async function reachOf(synthesized: readonly string[], own: readonly string[] = OWN): Promise<PublicAddresses> {
  const reach = new PublicAddresses(
    async (name) => {
      expect(name).toBe("ipv4only.arpa");
      return ["192.0.0.170", "192.0.0.171", ...synthesized];
    },
    () => own,
  );
  await reach.look();
  return reach;
}

/** As the system is when no more files can be opened. */
function unknown(): never {
  throw new Error("no descriptor is left");
}

test("the configuration server of Azure's virtual machines is not public, in any spelling", () => {
  for (const address of ["168.63.129.16", "::ffff:168.63.129.16", "::ffff:a83f:8110"])
    expect(isPublicAddress(address), address).toBe(false);
  expect(isPublicAddress("168.63.129.17")).toBe(true);
});

test("this machine's own public addresses are not called, in any spelling", async () => {
  const reach = await reachOf([]);
  for (const address of [...OWN, "::ffff:93.184.215.14", "2606:4700:0::0001"])
    expect(reach.allows(address), address).toBe(false);
  for (const address of ["93.184.215.15", "2606:4700::2"]) expect(reach.allows(address), address).toBe(true);
  const send = httpSender({ allowPrivate: false, reach, resolve: async () => [OWN[0]!] });
  const request = { url: "http://own.example/", headers: {}, body: "{}" };
  expect(await send(request, noSignal)).toEqual({ isDelivered: false, reason: "private-address" });
});

test("without this machine's own addresses nothing is sent; the next delivery asks for them again, and later what was known stays", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const answers = [null, OWN, null, ["93.184.215.15"]];
  const reach = new PublicAddresses(
    async () => [],
    () => answers.shift() ?? unknown(),
  );
  await expect(reach.look()).rejects.toThrow("no descriptor");
  const seen: boolean[][] = [];
  for (let look = 0; look < 3; look++) {
    await reach.look();
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(["93.184.215.14", "93.184.215.15"].map((address) => reach.allows(address)));
    vi.advanceTimersByTime(60_000);
  }
  expect(seen).toEqual([
    [false, true],
    [false, true],
    [true, false],
  ]);
});

describe("a NAT64 of the network", () => {
  // The examples of RFC 6052, section 2.4, under a prefix that is unicast, with 192.0.0.170 and 10.0.0.1 in the place of 192.0.2.33.
  test.each([
    [32, "2600:db8:c000:aa::", "2600:db8:a00:1::"],
    [40, "2600:db8:1c0:0:aa::", "2600:db8:10a:0:1::"],
    [48, "2600:db8:122:c000:0:aa00::", "2600:db8:122:a00:0:100::"],
    [56, "2600:db8:122:3c0:0:aa::", "2600:db8:122:30a:0:1::"],
    [64, "2600:db8:122:344:c0:0:aa00:0", "2600:db8:122:344:a:0:100:0"],
    [96, "2600:db8:122:344::c000:aa", "2600:db8:122:344::a00:1"],
  ])("with a prefix of %i bits is found, and leads to no address that is not public", async (length, named, inside) => {
    const reach = await reachOf([named]);
    expect(reach.allows(inside)).toBe(false);
    // Beside the prefix, with another last bit of it.
    const at = (text: string) => ipaddr.IPv6.parse(text).toByteArray();
    const beside = at(inside).map((byte, i) => (i === length / 8 - 1 ? byte ^ 1 : byte));
    expect(reach.allows(ipaddr.fromByteArray(beside).toString())).toBe(true);
    expect((await reachOf([])).allows(inside)).toBe(true);
  });

  test("still leads to public addresses, but not to this machine's own", async () => {
    const reach = await reachOf(["2600:db8:122:344::c000:aa"]);
    expect(reach.allows("2600:db8:122:344::101:101")).toBe(true);
    expect(reach.allows("2600:db8:122:344::5db8:d70e")).toBe(false);
    expect(reach.allows("2600:db8:122:345::a00:1")).toBe(true);
  });

  test("is waited for by all that come before it is known", async () => {
    let answer: (addresses: readonly string[]) => void = () => {};
    const asked = new Promise<readonly string[]>((resolve) => (answer = resolve));
    const reach = new PublicAddresses(
      () => asked,
      () => OWN,
    );
    const send = httpSender({ allowPrivate: false, reach });
    const request = { url: "http://[2600:db8:122:344::a00:1]/", headers: {}, body: "{}" };
    const both = Promise.all([send(request, noSignal), send(request, noSignal)]);
    answer(["2600:db8:122:344::c000:aa"]);
    for (const verdict of await both) expect(verdict).toEqual({ isDelivered: false, reason: "private-address" });
  });

  test("that was known stays while nobody answers for it, and is replaced when somebody does", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const [inside, moved] = ["2600:db8:122:344::a00:1", "2600:db8:122:345::a00:1"];
    const answers = [["2600:db8:122:344::c000:aa"], null, ["2600:db8:122:345::c000:aa"]];
    const reach = new PublicAddresses(
      async () => answers.shift() ?? Promise.reject(new Error("no answer")),
      () => OWN,
    );
    const seen: boolean[][] = [];
    for (let look = 0; look < 3; look++) {
      await reach.look();
      await new Promise((resolve) => setImmediate(resolve));
      seen.push([inside, moved].map((address) => reach.allows(address)));
      vi.advanceTimersByTime(60_000);
    }
    expect(seen).toEqual([
      [false, true],
      [false, true],
      [true, false],
    ]);
  });

  test("that cannot be asked for is none", async () => {
    const reach = new PublicAddresses(
      () => Promise.reject(new Error("no such name")),
      () => OWN,
    );
    await reach.look();
    expect(reach.allows("2606:4700::2")).toBe(true);
    expect(reach.allows(OWN[0]!)).toBe(false);
  });
});
