/** A token that the operator makes with the operator key and that only reads: what it opens, and that it changes nothing. */
import { beforeAll, expect, test } from "vitest";
import { generatePrivateKey, operatorKey } from "#cairnlog/engine/index.js";
import { readOnlyToken } from "#cairnlog/engine/registry/access/session-token.js";
import { cairnlog } from "../../cli/harness.js";
import { expectProblem, startTestService, type TestService, temporaryFolder } from "../harness.js";

const folder = temporaryFolder();
let service: TestService;
let bearer: { authorization: string };
beforeAll(async () => {
  service = await startTestService({ SERVICE_DATA_DIR: folder });
  const made = await cairnlog(["operator", "token", "--read-only", "--hours", "2", "--data", folder, "--json"]);
  expect(made.code, made.stderr).toBe(0);
  const { token, expires_at, fingerprint } = JSON.parse(made.stdout);
  expect(fingerprint).toBe(service.server.operatorFingerprint);
  expect(Math.abs(Date.parse(expires_at) - Date.now() - 7_200_000)).toBeLessThan(600_000);
  bearer = { authorization: `Bearer ${token}` };
});

test("reads what only the operator may read", async () => {
  const { status, body } = await service.get("/webhooks", bearer);
  expect([status, body]).toEqual([200, []]);
});

test("shows the servers of webhooks alone: path and query of a URL may be secrets", async () => {
  const { webhooks } = service.server.registry;
  const owner = service.server.operatorFingerprint;
  for (const url of [
    "https://hooks.example.org/a?token=secret",
    "https://hooks.example.org/services/T0/B0/secret",
    "https://hooks.example.org:8443",
  ])
    await webhooks.subscribe({ url }, owner);
  const { body } = await service.get("/webhooks", bearer);
  const shown = body.map(({ url }: { readonly url: string }) => url);
  expect(shown).toEqual(["https://hooks.example.org", "https://hooks.example.org", "https://hooks.example.org:8443"]);
  expect(webhooks.list(owner).map(({ url }) => url)[0]).toContain("?token=secret");
});

test.each([
  ["/webhooks", { url: "https://hooks.example.org/" }],
  ["/log/sth/sign", {}],
  ["/log/anchor", {}],
  ["/auth/renew", {}],
  ["/inbox/1/read", {}],
])("POST %s is refused", async (path, body) => {
  expectProblem(await service.post(path, body, bearer), 403, "forbidden");
});

test("ends when it expires, and is none of another key", async () => {
  const now = Math.floor(Date.now() / 1000);
  const other = operatorKey(generatePrivateKey("ed25519"));
  for (const token of [await readOnlyToken(other, now, now + 60)])
    expectProblem(await service.get("/webhooks", { authorization: `Bearer ${token}` }), 401, "unauthenticated");
});

test.each([
  [["--hours", "0", "--read-only"], "--hours must be a whole number from 1 to 720"],
  [["--hours", "721", "--read-only"], "--hours must be a whole number from 1 to 720"],
  [["--hours", "x", "--read-only"], "--hours must be a whole number from 1 to 720"],
  [[], "--read-only is missing"],
])("%j is not understood", async (more, said) => {
  const { code, stderr } = await cairnlog(["operator", "token", "--data", folder, ...more]);
  expect(code).toBe(2);
  expect(stderr).toContain(said);
});
