/** The properties of every operation: an area, a rate limit, an id, and whether other origins may read its answer. */
import { beforeAll, describe, expect, test } from "vitest";
import { sinkOf } from "#cairnlog/server/process/logger.js";
import { type Reply, startTestService, type TestService } from "../../server/harness.js";
import { type Operation, operationsOf } from "../tour.js";

/** Every limit, as the headers describe it. */
const POLICIES = {
  general: '"general";q=100;w=60',
  "key-registration": '"key-registration";q=10;w=3600',
  attestation: '"attestation";q=50;w=3600',
  "endorsement-offer": '"endorsement-offer";q=20;w=86400',
  "claim-reveal": '"claim-reveal";q=30;w=3600',
  anchoring: '"anchoring";q=12;w=3600',
  "log-verification": '"log-verification";q=12;w=3600',
  tlog: '"tlog";q=6000;w=60',
} as const;

/** The operations with another limit than the general one. */
const OWN_LIMITS: Readonly<Record<string, keyof typeof POLICIES>> = {
  "POST /api/v1/keys/register": "key-registration",
  "POST /api/v1/attestations": "attestation",
  "POST /api/v1/documents/sign": "attestation",
  "POST /api/v1/endorsements/offer": "endorsement-offer",
  "POST /api/v1/claims/{entry_id}/reveal": "claim-reveal",
  "POST /api/v1/log/anchor": "anchoring",
  "POST /api/v1/log/verify": "log-verification",
  "GET /tlog/checkpoint": "tlog",
  "GET /tlog/vkey": "tlog",
  "GET /tlog/tile/{level}/{n1}": "tlog",
  "GET /tlog/tile/{level}/{n1}/{n2}": "tlog",
};
/** Probes of the operator's own machines, which are never refused. */
const UNCOUNTED = ["GET /livez", "GET /leader", "GET /follower", "GET /readyz", "GET /metrics"];

/** The first pattern that matches a path gives its area. */
const AREAS: readonly (readonly [RegExp, string])[] = [
  [/^\/api\/v1\/(log\/(attestation-requests|request-policies)|inbox)/, "Attestation requests"],
  [/^\/api\/v1\/(log|audit)(\/|$)/, "Log"],
  [/^\/tlog\//, "C2SP log"],
  [/^\/api\/v1\/auth\//, "Authentication"],
  [/^\/api\/v1\/keys(\/|$)/, "Keys"],
  [/^\/api\/v1\/(attestations|documents|composite)(\/|$)/, "Signing"],
  [/^\/api\/v1\/verify(\/|$)/, "Verification"],
  [/^\/api\/v1\/(endorsements\/|identifier-types$)/, "Endorsements"],
  [/^\/api\/v1\/(graph|trust-configs)(\/|$)/, "Trust"],
  [/^\/api\/v1\/claims(\/|$)/, "Encrypted claims"],
  [/^\/api\/v1\/(users|credentials)(\/|$)/, "Accounts"],
  [/^\/api\/v1\/webhooks(\/|$)/, "Webhooks"],
  [/^\/(api\/v1\/(health|writers|openapi\.json)|livez|leader|follower|readyz|metrics)$/, "Service"],
];

const nameOf = ({ method, path }: Operation) => `${method} ${path}`;

let service: TestService;
let operations: Operation[];
/** The details of every line of the service's log. */
const logged: object[] = [];
beforeAll(async () => {
  const limits = { SERVICE_RATE_LIMITS: "on", SERVICE_TRUSTED_PROXIES: "127.0.0.1" };
  // Its lines come from the thread of a front end.
  service = await startTestService(
    { ...limits, LOG_LEVEL: "debug", SERVICE_FRONT_ENDS: "1" },
    { logger: sinkOf((_, details) => logged.push(details)) },
  );
  operations = operationsOf(await service.openApi());
});

/** Sends a request from a new client. The things that it names do not exist, and a body is an empty object. */
function ask({ method, path, definition }: Operation, client: number, more = {}): Promise<Reply> {
  const headers = { "x-forwarded-for": `198.51.${client >> 8}.${client & 255}`, ...more };
  const filled = path.replaceAll(/\{(\w+)\}/g, "99999");
  return service.send(method, filled, { headers, ...(definition.requestBody ? { body: "{}" } : {}) });
}

describe("every operation", () => {
  test("is in the area of its path", () => {
    const seen = operations.map((operation) => [nameOf(operation), operation.definition.tags]);
    const area = (path: string) => AREAS.find(([pattern]) => pattern.test(path))?.[1];
    expect(seen).toEqual(operations.map((operation) => [nameOf(operation), [area(operation.path)]]));
  });

  test("counts against the limit it should", async () => {
    const seen: Record<string, readonly [string | null, number]> = {};
    const expected: Record<string, readonly [string | null, number]> = {};
    for (const [client, operation] of operations.entries()) {
      const { headers } = await ask(operation, client);
      const name = nameOf(operation);
      const policy = POLICIES[OWN_LIMITS[name] ?? "general"];
      const allowed = Number(/q=(\d+)/.exec(policy)![1]);
      seen[name] = [headers.get("ratelimit-policy"), Number(headers.get("ratelimit-remaining"))];
      expected[name] = [policy, UNCOUNTED.includes(name) ? allowed : allowed - 1];
    }
    expect(seen).toEqual(expected);
    for (const name of [...Object.keys(OWN_LIMITS), ...UNCOUNTED]) expect(expected).toHaveProperty([name]);
  });

  test("has one id in its header, in its problem and in the log: the client's, or one of the service", async () => {
    const absent = { id: "", path: "/api/v1/absent", definition: {} };
    const asked = [...operations, { ...absent, method: "GET" }, { ...absent, method: "OPTIONS", path: "/livez" }];
    const ids: string[] = [];
    for (const [i, operation] of asked.entries()) {
      for (const own of [undefined, `walk-${i}`]) {
        const client = 2 * operations.length + i;
        const { headers, body, status, text } = await ask(operation, client, own && { "x-request-id": own });
        const id = headers.get("x-request-id")!;
        expect(id, nameOf(operation)).toEqual(own ?? expect.stringMatching(/^[0-9a-f-]{36}$/));
        if (status >= 400) expect(body.request_id, text).toBe(id);
        ids.push(id);
      }
    }
    expect(new Set(ids).size).toBe(2 * asked.length);
    await expect
      .poll(() => logged.map((details) => "id" in details && details.id))
      .toEqual(expect.arrayContaining(ids));
  });

  test("of many submissions, each refused one has the id of the request that brought it", async () => {
    const own = { "x-request-id": "many" };
    const { body } = await service.post("/attestations/batch", { submissions: [{}, 1] }, own);
    for (const { problem } of body.results)
      expect(problem).toMatchObject({ code: "invalid-input", request_id: "many" });
  });

  test("that reads may be read by pages of all origins, and one that writes by none", async () => {
    const writes = ["POST", "DELETE"];
    const seen: Record<string, string | null> = {};
    for (const [i, operation] of operations.entries()) {
      const { headers } = await ask(operation, operations.length + i);
      seen[nameOf(operation)] = headers.get("access-control-allow-origin");
    }
    expect(seen).toEqual(
      Object.fromEntries(operations.map((one) => [nameOf(one), writes.includes(one.method) ? null : "*"])),
    );
  });
});
