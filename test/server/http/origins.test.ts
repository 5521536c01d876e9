/** How the service is called: its own origins, and the one under which a request came. */
import { describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { Origins, requirePublicUrl } from "#cairnlog/server/http/origins.js";
import { startServer } from "#cairnlog/server/index.js";
import { readSettings } from "#cairnlog/server/settings/settings.js";

const LOOPBACK = ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"];
const originsOf = (env: Record<string, string>) => new Origins(readSettings(env));

describe("the service's own origins", () => {
  test.each([
    ["listening on loopback alone", {}, LOOPBACK],
    ["by its name", { HOST: "localhost" }, [LOOPBACK[1], LOOPBACK[0], LOOPBACK[2]]],
    ["by IPv6", { HOST: "::1" }, [LOOPBACK[2], LOOPBACK[0], LOOPBACK[1]]],
    ["on another address of loopback", { HOST: "127.8.0.1" }, ["http://127.8.0.1:8080", ...LOOPBACK]],
    [
      "with a certificate",
      { SERVICE_TLS_CERT: "c", SERVICE_TLS_KEY: "k" },
      LOOPBACK.map((o) => o.replace("http", "https")),
    ],
    ["behind a proxy", { SERVICE_PUBLIC_URL: "https://log.example" }, ["https://log.example", ...LOOPBACK]],
    [
      "for everybody",
      { HOST: "0.0.0.0", SERVICE_PUBLIC_URL: "https://log.example, http://10.0.0.1:8080" },
      ["https://log.example", "http://10.0.0.1:8080"],
    ],
    [
      "as a node",
      { HOST: "10.0.0.2", SERVICE_PUBLIC_URL: "https://log.example", SERVICE_NODE_URL: "https://a.log.example" },
      ["https://log.example", "https://a.log.example"],
    ],
    ["each once", { SERVICE_PUBLIC_URL: LOOPBACK[1]! }, [LOOPBACK[1], LOOPBACK[0], LOOPBACK[2]]],
    ["on the default port", { PORT: "80" }, ["http://127.0.0.1", "http://localhost", "http://[::1]"]],
  ])("%s", (_, env, all) => {
    const origins = originsOf(env as Record<string, string>);
    expect(origins.all).toEqual(all);
    expect(origins.name).toBe(all[0]);
  });

  test("with the port that it was given", () => {
    const origins = originsOf({ PORT: "0" });
    origins.listensOn(4711);
    expect(origins.all).toEqual(LOOPBACK.map((origin) => origin.replace("8080", "4711")));
    expect(origins.of("localhost:4711")).toBe("http://localhost:4711");
  });
});

describe("a request came under", () => {
  const origins = originsOf({
    SERVICE_PUBLIC_URL: "https://log.example,http://old.example,https://other.example:8443",
  });
  test.each([
    ["log.example", "https://log.example"],
    ["LOG.Example", "https://log.example"],
    ["log.example:443", "https://log.example"],
    ["old.example:80", "http://old.example"],
    ["other.example:8443", "https://other.example:8443"],
    ["localhost:8080", "http://localhost:8080"],
    ["[::1]:8080", "http://[::1]:8080"],
    // What is not the service's own is not believed.
    ["other.example", "https://log.example"],
    ["log.example:80", "https://log.example"],
    ["localhost:9", "https://log.example"],
    ["evil.example", "https://log.example"],
    ["__proto__", "https://log.example"],
    ["", "https://log.example"],
  ])("%j: %s", (host, origin) => expect(origins.of(host)).toBe(origin));
});

describe("a public address is an origin and nothing else", () => {
  test.each([
    "log.example",
    "https://log.example/",
    "https://log.example/log",
    "https://LOG.example",
    "https://log.example:443",
    "http://log.example:80",
    "https://log.example?a",
    "https://log.example#a",
    "https://user@log.example",
    "https://lög.example",
    "ftp://log.example",
    "null",
    "*",
    "https://log.example,https://log.example",
    Array.from({ length: 33 }, (_, i) => `https://${i}.example`).join(),
  ])("%s", (text) => {
    expect(() => readSettings({ SERVICE_PUBLIC_URL: text })).toThrow(
      /^SERVICE_PUBLIC_URL must be at most 32 different /,
    );
    if (!text.includes(","))
      expect(() => readSettings({ SERVICE_NODE_URL: text })).toThrow(/^SERVICE_NODE_URL must be one of origins /);
  });
});

test.each(["0.0.0.0", "::", "10.0.0.1", "log.example", "localhost.example", "127.0.0.1.example", ""])(
  "a service that listens on %j does not start without a public address",
  async (host) => {
    const refused = await startServer({ host, port: 0 }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(CairnlogError);
    expect(refused).toMatchObject({
      code: "invalid-input",
      message: expect.stringContaining("set SERVICE_PUBLIC_URL"),
    });
    requirePublicUrl({ host, publicUrls: ["https://log.example"] });
  },
);
