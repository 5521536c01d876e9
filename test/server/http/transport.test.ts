/** Which HTTP library serves, and what is said of it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { chooseTransport } from "#cairnlog/server/http/servers/choose.js";
import { cairnlog, scratchFolder, startService } from "../../service.js";
import { startTestService, WANTED_TRANSPORT } from "../harness.js";
import { metric } from "../sockets.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

/** Loaded before the command: the binary fails as it does where the C library is too old. */
const WITHOUT_UWS = join(folder.path, "without-uws.cjs");
const REASON = "/lib/libc.so.6: version `GLIBC_2.38' not found (required by uws.node)";
writeFileSync(
  WITHOUT_UWS,
  `const { dlopen } = process;
process.dlopen = (module, file, ...rest) => {
  if (file.includes("uws_")) throw new Error(${JSON.stringify(REASON)});
  return dlopen.call(process, module, file, ...rest);
};`,
);
const withoutUws = { NODE_OPTIONS: `--require ${WITHOUT_UWS}`, LOG_LEVEL: "warn" };
const ready = async (url: string) => (await fetch(`${url}/readyz`)).json();

test("the service says which one it is", async () => {
  const service = await startTestService();
  const { transport } = service.server;
  if (WANTED_TRANSPORT) expect(transport).toBe(WANTED_TRANSPORT);
  expect((await service.send("GET", "/readyz")).body).toMatchObject({ status: "ok", transport });
  expect(await metric(service.url, `cairnlog_http_info{transport="${transport}"}`)).toBe(1);
});

test("node:http serves if it is chosen, without a warning", async () => {
  expect(await chooseTransport("node")).toMatchObject({ transport: { name: "node" }, whyNotUws: null });
});

test("where uWebSockets.js does not load, node:http serves, and /readyz says so", async () => {
  const environment = { ...withoutUws, SERVICE_TRANSPORT: "" };
  const service = await startService(join(folder.path, "data"), environment);
  try {
    const { transport, warnings } = (await ready(service.url)) as { transport: string; warnings: string[] };
    expect(transport).toBe("node");
    expect(warnings).toContainEqual(expect.stringMatching(/^uWebSockets\.js does not load .* node:http serves\./));
  } finally {
    expect(await service.stop()).toBe(0);
  }
});

test("if uws is chosen and does not load, the service ends with a sentence that says why", async () => {
  const data = join(folder.path, "unused");
  const env = { ...process.env, ...withoutUws, SERVICE_TRANSPORT: "uws", PORT: "0", SERVICE_DATA_DIR: data };
  const { code, stdout, stderr } = await cairnlog(["serve"], { env });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(`uWebSockets.js does not load on this machine: ${REASON}. Unset SERVICE_TRANSPORT`);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

test("another name is not understood", async () => {
  const { code, stderr } = await cairnlog(["serve"], { env: { ...process.env, SERVICE_TRANSPORT: "fastify" } });
  expect(code).toBe(2);
  expect(stderr).toContain('SERVICE_TRANSPORT must be uws or node, not "fastify".');
});
