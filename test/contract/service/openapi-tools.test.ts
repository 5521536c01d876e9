/**
 * What generators of clients and checkers of APIs need from the OpenAPI document: every method of a path, bodies that may
 * be sent, objects that can be filled, and paths that cannot be mistaken for each other. The service is asked, too.
 */
import { beforeAll, describe, expect, test } from "vitest";
import type { Contract, Document } from "../../server/contract.js";
import { type Controlled, startControlled } from "../../server/controlled.js";
import { bearerOf, registeredSigner } from "../../server/proofs.js";
import type { TestSigner } from "../../server/signers.js";
import { everyOperation, type Operation } from "../tour.js";

let world: Controlled;
let contract: Contract;
let document: Document;
let operations: Operation[];
let signer: TestSigner;
beforeAll(async () => {
  world = await startControlled();
  contract = await world.service.contract();
  ({ document } = contract);
  operations = everyOperation(document);
  signer = await registeredSigner(world.service);
  await registeredSigner(world.service);
});

/** A request to an operation: things that are there where the service has any, and required members of the query. */
function targetOf({ path, definition }: Operation): string {
  const there: Readonly<Record<string, string>> = { fingerprint: signer.fingerprint, level: "0", index: "0" };
  const parameters: Document[] = definition.parameters ?? [];
  const value = (name: string) => there[name] ?? (name.endsWith("_p") ? "0.p" : name === "version" ? "2" : "1");
  const required = parameters.filter((one) => one.in === "query" && one.required);
  const query = new URLSearchParams(required.map(({ name, example }) => [name, String(example)]));
  return `${path.replace(/\{(\w+)\}/g, (_, name) => value(name))}${required.length ? `?${query}` : ""}`;
}

describe("methods", () => {
  test("a path answers 405 to those that the document does not list, and names those that it does", async () => {
    const paths = new Map(operations.map((operation) => [operation.path, operation]));
    for (const [path, operation] of paths) {
      const known = [...Object.keys(document.paths[path]), "options"].map((method) => method.toUpperCase()).sort();
      for (const method of ["PUT", "PATCH", "DELETE", "POST", "GET", "HEAD"].filter((one) => !known.includes(one))) {
        const { status, headers } = await world.service.send(method, targetOf(operation));
        expect([status, headers.get("allow")?.split(", ").sort()], `${method} ${path}`).toEqual([405, known]);
      }
      expect((await world.service.send("OPTIONS", targetOf(operation))).status).toBe(204);
    }
  });

  test("every GET answers HEAD: the same status and headers, and no body", async () => {
    const of = (wanted: string) => operations.filter(({ method }) => method === wanted);
    expect(of("HEAD").map(({ path }) => path)).toEqual(of("GET").map(({ path }) => path));
    const session = await bearerOf(world.service, signer);
    const statuses = new Set<number>();
    for (const [i, operation] of of("GET").entries()) {
      const head = of("HEAD")[i]!.definition;
      const { responses, operationId: _, summary, ...rest } = operation.definition;
      expect(head).toMatchObject({ ...rest, summary: `${summary}: the headers alone` });
      expect(Object.keys(head.responses)).toEqual(Object.keys(responses));
      for (const headers of [{}, session, { ...session, "if-none-match": "*" }]) {
        const ask = async (method: string) => {
          const reply = await world.service.send(method, targetOf(operation), { headers });
          // The length of a streamed answer is not known beforehand.
          const names = [...reply.headers.keys()].filter(
            (name) => !/^(?:content-length|transfer-encoding)$/.test(name),
          );
          return { ...reply, seen: [reply.status, names.sort()] };
        };
        const [get, without] = [await ask("GET"), await ask("HEAD")];
        expect(without.seen, operation.path).toEqual(get.seen);
        expect(without.text).toBe("");
        statuses.add(get.status);
      }
    }
    expect([...statuses].sort()).toEqual([200, 304, 401, 404, 422, 503]);
  });
});

describe("bodies", () => {
  test("the POSTs that take nothing from one may be sent any, or none", async () => {
    const free = operations.filter(({ definition }) => definition.requestBody?.required === false);
    expect(free.map(({ id }) => id).sort()).toEqual([
      "post_auth_renew",
      "post_inbox_id_read",
      "post_log_anchor",
      "post_log_sth_sign",
      "post_log_verify",
    ]);
    const without = operations.filter(({ method, definition }) => method === "POST" && !definition.requestBody);
    expect(without.map(({ id }) => id)).toEqual([]);
    const operator = {
      fingerprint: world.operatorFingerprint,
      sign: (message: string | Uint8Array) => world.operatorSign(Buffer.from(message)).toString("base64"),
    };
    const sessions = { operator: await bearerOf(world.service, operator), own: await bearerOf(world.service, signer) };
    for (const operation of free) {
      const headers = operation.path.includes("/log/") ? sessions.operator : sessions.own;
      const statuses = [];
      for (const body of [undefined, "{}", '{"any":["member"]}', ""]) {
        const init = body === undefined ? { headers } : { headers, body };
        statuses.push((await world.service.send("POST", targetOf(operation), init)).status);
      }
      // Nothing is in the inbox, and no calendar is set.
      const expected = { post_inbox_id_read: 404, post_log_anchor: 502 }[operation.id] ?? 200;
      expect(statuses, operation.id).toEqual(Array.from({ length: 4 }, () => expected));
    }
  });

  test("objects that may hold anything say so, and every value has a type", () => {
    const silent: string[] = [];
    for (const [where, node] of nodesOf(document)) {
      if (/\/(?:examples?|default)(?:\/|$)/.test(where)) continue;
      for (const keyword of ["patternProperties", "documented"]) expect(node, where).not.toHaveProperty(keyword);
      if (Array.isArray(node.enum) && !where.endsWith("/code"))
        expect(node.type, where).toMatch(/^(?:string|integer)$/);
      if (node.type === "object" && !node.properties && !node.additionalProperties) silent.push(where);
    }
    expect(silent).toEqual([]);
    // Generators take a member with a default for one that is always there.
    const bodies = operations.flatMap(
      ({ definition }) => definition.requestBody?.content["application/json"].schema ?? [],
    );
    const names = bodies.map(({ $ref }) => $ref?.split("/").at(-1)).filter(Boolean);
    for (const name of names)
      for (const [where, node] of nodesOf(document.components.schemas[name]))
        expect(node.default, `${name} ${where}`).toBeUndefined();
    const { CreateAttestationRequest, SealedClaim, TrustStatus } = document.components.schemas;
    expect(CreateAttestationRequest.properties.claims.anyOf[0]).toMatchObject({ additionalProperties: true });
    expect(TrustStatus.properties.received.additionalProperties).toEqual({ type: "integer" });
    expect(SealedClaim.required).toHaveLength(6);
    for (const name of SealedClaim.required) expect(SealedClaim.properties[name].type, name).toBe("string");
  });
});

test("no path fits two templates", () => {
  const isOf = (text: string, part: string, path: string): boolean => {
    if (!part.startsWith("{")) return text === part;
    const [any] = Object.values<Document>(document.paths[path]);
    const { schema } = any.parameters.find(({ name }: Document) => `{${name}}` === part);
    return contract.faults(schema, schema.type === "integer" ? Number(text) : text).length === 0;
  };
  const overlap = (a: string, b: string): boolean => {
    const [left, right] = [a.split("/"), b.split("/")];
    if (left.length !== right.length) return false;
    return left.every((part, i) => {
      const other = right[i]!;
      if (part.startsWith("{")) return other.startsWith("{") || isOf(other, part, a);
      return isOf(part, other, b);
    });
  };
  const paths = Object.keys(document.paths);
  const pairs = paths.flatMap((a, i) => paths.slice(i + 1).flatMap((b) => (overlap(a, b) ? [`${a} ${b}`] : [])));
  expect(pairs).toEqual([]);
  expect(overlap("/api/v1/log/{entry_id}", "/api/v1/claims/{entry_id}")).toBe(false);
  expect(overlap("/api/v1/log/{entry_id}", "/api/v1/log/{entry_id}")).toBe(true);
  expect(overlap("/api/v1/log/sth/{tree_size}", "/api/v1/log/sth/7")).toBe(true);
});

function* nodesOf(node: Document, where = "#"): Iterable<readonly [string, Document]> {
  if (typeof node !== "object" || node === null) return;
  yield [where, node];
  for (const [name, part] of Object.entries<Document>(node)) yield* nodesOf(part, `${where}/${name}`);
}
