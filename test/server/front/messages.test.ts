/** What crosses from one thread to another arrives as it was: errors, settings, shared numbers. */
import { describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { errorOf, faultOf } from "#cairnlog/server/front/messages.js";
import { SharedState } from "#cairnlog/server/front/shared-state.js";
import { HttpError, problemAnswer } from "#cairnlog/server/http/route/problems.js";
import { clientAddress, parseNetwork } from "#cairnlog/server/http/transport/client-address.js";
import { readSettings } from "#cairnlog/server/index.js";

const carried = (error: unknown): unknown => errorOf(structuredClone(faultOf(error)));

describe("an error becomes the same answer in the other thread", () => {
  test.each([
    new CairnlogError("not-found", "There is no such key."),
    new CairnlogError("invalid-input", "Two faults.", {
      details: [
        { path: "/a", message: "It is missing." },
        { path: "/b/0", message: "It is too long." },
      ],
    }),
    new CairnlogError("rate-limited", "Too many.", { retryAfter: 17 }),
    new CairnlogError("storage-failed", "The disk.", { cause: new Error("EIO") }),
    new HttpError("not-ready", "Only 3 MiB are free.", { "retry-after": "10" }),
    new TypeError("x is not a function"),
    "no error at all",
  ])("%s", (error) => {
    expect(problemAnswer(carried(error), "a")).toEqual(problemAnswer(error, "a"));
  });

  test("and every part of it arrives: nothing that an error can have is left behind", () => {
    // The compiler asks for each part of an error of the engine.
    const parts: Required<NonNullable<ConstructorParameters<typeof CairnlogError>[2]>> = {
      cause: undefined,
      details: [{ path: "/a", message: "It is missing." }],
      retryAfter: 17,
      successor: { url: "https://next.example", vkey: "next.example+12345678+AbCd" },
    };
    const whole = new CairnlogError("frozen", "The log is frozen.", parts);
    expect({ ...(carried(whole) as object) }).toEqual({ ...whole });
    for (const key of ["details", "retryAfter", "successor"] as const) {
      const one = new CairnlogError("frozen", "The log is frozen.", { [key]: parts[key] });
      expect({ ...(carried(one) as object) }).toEqual({ ...one });
    }
    const http = new HttpError("not-ready", "Not ready.", { "retry-after": "10" });
    expect({ ...(carried(http) as object) }).toEqual({ ...http });
  });

  test("what nobody expected keeps its text and its stack for the service's log", () => {
    const error = new RangeError("out of nowhere");
    expect(carried(error)).toMatchObject({ message: "out of nowhere", stack: error.stack });
  });
});

test("settings arrive whole, networks of proxies included", () => {
  const settings = readSettings({
    SERVICE_TRUSTED_PROXIES: "10.1.0.0/16, 192.0.2.7, 2001:db8::/32",
    SERVICE_TRUST_ANCHORS: `sha256:${"a".repeat(64)}`,
    SERVICE_SIGNER: "unix:/run/signer",
  });
  const arrived = structuredClone(settings);
  expect(arrived).toEqual(settings);
  const networks = arrived.trustedProxies.map((text) => parseNetwork(text)!);
  for (const [proxy, client] of [
    ["10.1.255.1", "203.0.113.5"],
    ["192.0.2.7", "203.0.113.5"],
    ["2001:db8:1::1", "203.0.113.5"],
    ["192.0.2.8", "192.0.2.8"],
    ["10.2.0.1", "10.2.0.1"],
  ] as const)
    expect(clientAddress(proxy, "203.0.113.5", networks), proxy).toBe(client);
});

describe("the numbers that threads share", () => {
  test("count connections of all front ends; those of one that begins anew are gone", () => {
    const sharedState = SharedState.create(3);
    const other = new SharedState(sharedState.buffer);
    expect([sharedState.addConnections(0, 5), other.addConnections(2, 4), sharedState.addConnections(0, -2)]).toEqual([
      5, 9, 7,
    ]);
    sharedState.begin(2);
    expect(other.addConnections(1, 1)).toBe(4);
  });

  test("know who has given no sign, and wait for one that ends no longer than they should", () => {
    const sharedState = SharedState.create(2);
    sharedState.begin(0);
    sharedState.begin(1);
    expect(sharedState.silence(0)).toBeGreaterThanOrEqual(0);
    Atomics.store(new Int32Array(sharedState.buffer), 1, Atomics.load(new Int32Array(sharedState.buffer), 1) - 6_000);
    expect(sharedState.silence(0)).toBeGreaterThanOrEqual(6_000);
    expect(sharedState.silence(1)).toBeLessThan(6_000);
    sharedState.end(1);
    sharedState.waitForEnd(1, 60_000);
    sharedState.waitForEnd(0, 1);
  });

  test("go on when the count of messages starts anew", () => {
    const sharedState = SharedState.create(1);
    sharedState.count(2 ** 31 - 1);
    const before = sharedState.fed;
    sharedState.count(2);
    expect((sharedState.fed - before) | 0).toBe(2);
  });
});
