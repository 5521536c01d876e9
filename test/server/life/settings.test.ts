/** Settings: defaults, and a message for each invalid one. */
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { describeSettings, readSettings } from "#cairnlog/server/index.js";
import { operatorKeyPath } from "#cairnlog/server/settings/settings.js";

function refusal(env: Record<string, string>): CairnlogError {
  try {
    readSettings(env);
  } catch (error) {
    return error as CairnlogError;
  }
  throw new Error("the settings were accepted");
}

test("the defaults", () => {
  const settings = readSettings({});
  expect(settings).toMatchObject({
    port: 8080,
    host: "127.0.0.1",
    dataDir: resolve("data"),
    operatorKey: null,
    predicateBase: "https://x-service.example/predicates",
    rateLimits: true,
    rateLimitGeneral: 100,
    rateLimitKeyRegistration: 10,
    rateLimitAttestation: 50,
    trustedProxies: [],
    maxBodyBytes: 1_048_576,
    logLevel: "info",
  });
  expect(settings.workers).toBeGreaterThanOrEqual(1);
  expect(operatorKeyPath(settings)).toBe(resolve("data/operator.pem"));
});

test("an empty variable is one that is not set", () => {
  expect(readSettings({ PORT: "", SERVICE_RATE_LIMITS: "" })).toMatchObject({ port: 8080, rateLimits: true });
});

test("calendars are listed without slashes at their ends", () => {
  expect(readSettings({}).otsCalendars).toEqual([]);
  expect(readSettings({ SERVICE_OTS_CALENDARS: " https://a.example/ ,http://b.example:1/c," }).otsCalendars).toEqual([
    "https://a.example",
    "http://b.example:1/c",
  ]);
});

describe("a bad setting is refused with a sentence", () => {
  test.each([
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["PORT", "80a"],
    ["PORT", "1e3"],
    ["SERVICE_WORKERS", "0"],
    ["SERVICE_RATE_LIMITS", "true"],
    ["SERVICE_RATE_LIMIT_GENERAL", "0"],
    ["SERVICE_OTS_CALENDARS", "calendar.example"],
    ["SERVICE_OTS_CALENDARS", "ftp://calendar.example"],
    ["SERVICE_OTS_CALENDARS", "https://calendar.example?a"],
    ["SERVICE_OTS_CALENDARS", "https://user@calendar.example"],
    ["SERVICE_OTS_CALENDARS", "https://calendar.example,https://calendar.example/"],
    ["SERVICE_OTS_CALENDARS", Array.from({ length: 9 }, (_, i) => `https://c${i}.example`).join()],
    ["SERVICE_OTS_UPGRADE_INTERVAL_S", "0"],
    ["SERVICE_RATE_LIMIT_KEY_REGISTRATION", "ten"],
    ["SERVICE_RATE_LIMIT_ATTESTATION", "1.5"],
    ["SERVICE_MAX_BODY_BYTES", "1"],
    ["SERVICE_SIGNER", "/run/signer.sock"],
    ["SERVICE_SIGNER", "unix:run/signer.sock"],
    ["SERVICE_SIGNER", `unix:/${"a".repeat(107)}`],
    ["SERVICE_SIGNER_TIMEOUT_S", "0"],
    ["SERVICE_PREDICATE_BASE", "http://x.example/p"],
    ["SERVICE_PREDICATE_BASE", "https://x.example/p/"],
    ["SERVICE_PREDICATE_BASE", "nowhere"],
    ["SERVICE_TRUSTED_PROXIES", "10.0.0.0/33"],
    ["SERVICE_TRUSTED_PROXIES", "proxy.example"],
    ["SERVICE_TRUSTED_PROXIES", "127.1"],
    ["LOG_LEVEL", "loud"],
  ])("%s=%s", (name, value) => {
    const error = refusal({ [name]: value });
    expect(error).toBeInstanceOf(CairnlogError);
    expect(error.details).toEqual([{ path: name, message: error.message }]);
    expect(error.message).toMatch(new RegExp(`^${name} must be .+, not "`));
  });

  test("two places of the operator key", () => {
    const error = refusal({ SERVICE_SIGNER: "unix:/run/signer.sock", SERVICE_OPERATOR_KEY: "operator.pem" });
    expect(error.message).toBe(
      "SERVICE_SIGNER and SERVICE_OPERATOR_KEY must not be given together: only one of them has the key.",
    );
  });

  test("all of them at once", () => {
    expect(refusal({ PORT: "x", LOG_LEVEL: "y" }).details).toHaveLength(2);
  });
});

test("every setting is described", () => {
  for (const { name, about } of describeSettings()) {
    expect(name).toMatch(/^[A-Z_]+$/);
    expect(about.length).toBeGreaterThan(10);
  }
});
