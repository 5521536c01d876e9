/** Ports that browsers refuse are those that `fetch` refuses, and they are named by the service and by its client. */
import { expect, test, vi } from "vitest";
import { ClientError, createClient } from "#cairnlog/server/client/index.js";
import { isRefusedByBrowsers } from "#cairnlog/server/http/refused-ports.js";

const causeOf = (port: number) =>
  fetch(`http://127.0.0.1:${port}/`).then(
    () => "",
    ({ cause }) => (cause as Error).message,
  );

test("fetch sends nothing to them", async () => {
  const ports = Array.from({ length: 65_536 }, (_, port) => port).filter(isRefusedByBrowsers);
  expect(ports).toHaveLength(82);
  for (const port of ports) expect(await causeOf(port), `${port}`).toBe("bad port");
  expect([80, 443, 8080, 8443].filter(isRefusedByBrowsers)).toEqual([]);
});

const failure = (server: string) =>
  createClient({ server })
    .log.operatorKey()
    .then(
      () => "",
      (error: unknown) => (error instanceof ClientError ? error.message : String(error)),
    );

test("a client says so", async () => {
  expect(await failure("http://127.0.0.1:6000")).toBe(
    "Browsers and fetch send nothing to the port of http://127.0.0.1:6000. Let the service listen on another one.",
  );
});

test("a client names a proxy that Node does not use", async () => {
  for (const name of ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "NODE_USE_ENV_PROXY"])
    vi.stubEnv(name, undefined);
  const nobody = "No service answers at https://127.0.0.1:1023. Is it running?";
  try {
    expect(await failure("https://127.0.0.1:1023")).toBe(nobody);
    vi.stubEnv("HTTPS_PROXY", "http://127.0.0.1:3128");
    expect(await failure("https://127.0.0.1:1023")).toBe(
      `${nobody} HTTPS_PROXY is set, but Node uses it only with NODE_USE_ENV_PROXY=1, from 22.21 and 24 on.`,
    );
    expect(await failure("http://127.0.0.1:1023")).toBe(nobody.replace("https:", "http:"));
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    expect(await failure("https://127.0.0.1:1023")).toBe(nobody);
  } finally {
    vi.unstubAllEnvs();
  }
});
