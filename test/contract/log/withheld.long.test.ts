/**
 * A payload that is withheld, over HTTP: no route shows any of it, whatever it is asked, and what was proven of its entry before
 * holds as before.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { operatorSigner } from "../../crash/load.js";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { bearerOf } from "../../server/proofs.js";
import {
  canonical,
  newManifest,
  newSigner,
  registration,
  sha256,
  submission,
  type TestSigner,
} from "../../server/signers.js";
import { accountOf, newLookupKey, sealed } from "../signing/claimants.js";
import { type Operation, operationsOf } from "../tour.js";

const TITLE = "Zwetschgenkuchen";
const TAG = "quittengelee";
const STATEMENT = "Sauerampfersuppe";
const NAME = "Holundergelee";
const REASON = { reason: "A court has ordered it.", basis: "Case 12/26" };

let service: TestService;
let signer: TestSigner;
let operator: Record<string, string>;
let own: Record<string, string>;
let operations: Operation[];
/** The attestation and the claim that are withheld. */
let attested: number;
let claimed: number;
/** The registration whose name is withheld. */
let named: number;
/** What none may show afterwards. */
let secrets: readonly string[];
let values: Readonly<Record<string, readonly (string | number)[]>>;

const operatorOf = (of: TestService) =>
  bearerOf(of, operatorSigner(readFileSync(join(of.server.dataDir, "operator.pem"), "utf8")));

const manifest = newManifest(TITLE);
manifest.document.tags = [TAG];
let submitted: ReturnType<typeof submission>;
// biome-ignore lint/suspicious/noExplicitAny: a receipt as it was served
let receipt: any;

beforeAll(async () => {
  service = await startTestService({ SERVICE_FRONT_ENDS: "2" });
  operations = operationsOf(await service.openApi());
  signer = newSigner();
  named = (await service.post("/keys/register", registration(signer, NAME))).body.log_entry_id;
  expect((await service.post("/users", accountOf(signer))).status).toBe(201);
  await service.post("/attestations", submission(signer, newManifest("Before")));
  submitted = submission(signer, manifest, { intent_statement: STATEMENT });
  const { body } = await service.post("/attestations", submitted);
  receipt = body;
  attested = body.log_entry_id;
  own = await bearerOf(service, signer);
  const lookup = newLookupKey();
  const { payload } = sealed(lookup);
  claimed = (await service.post("/claims", { payload }, own)).body.entry_id;
  operator = await operatorOf(service);
  const { content_hash } = manifest.document;
  const documentHash = content_hash.slice("sha256:".length);
  const { manifest_hash, attestation_id } = (await service.get(`/log/${attested}`)).body.payload;
  secrets = [
    ...[TITLE, TAG, STATEMENT, documentHash, manifest_hash, attestation_id, submitted.signature],
    ...[payload.ciphertext, payload.commitment, lookup, NAME],
  ] as string[];
  values = {
    entry_id: [attested, claimed, named],
    leaf_index: [attested - 1],
    fingerprint: [signer.fingerprint],
    lookup_key: [lookup],
    tree_size: [attested],
    from: [1],
    page: [1],
    per_page: [200],
    page_size: [1000],
    names: ["true"],
    event_type: ["encrypted_claim"],
    tags: [TAG],
    search: [
      content_hash,
      documentHash.slice(0, 8),
      content_hash.slice(0, 20),
      manifest_hash,
      manifest_hash.slice(0, 6),
    ],
    title: [TITLE, TITLE.slice(0, 3).toLowerCase(), NAME.toLowerCase()],
    pseudonym: [NAME.slice(0, 2), NAME.toLowerCase()],
    document_hash: [content_hash, documentHash],
    scope: ["all", "attestations", "claims"],
    format: ["csv", "json"],
    start_date: ["2025-01-01"],
    n1: ["000", "000.p"],
    n2: ["1", "2"],
    level: ["entries", 0],
    version: [2],
    index: [0],
    index_p: ["0.p"],
    width: [4],
  };
  await service.post("/attestations", submission(signer, newManifest("Behind")));
});

/** The requests of a route: its path with every value, and each parameter of its query with every value that there is. */
function* requestsOf({ path, definition }: Operation): Generator<string> {
  let paths = [path];
  for (const [, name] of path.matchAll(/\{(\w+)\}/g))
    paths = paths.flatMap((one) => (values[name!] ?? ["1"]).map((value) => one.replace(`{${name}}`, `${value}`)));
  const parameters: { name: string; in: string; required?: boolean }[] = definition.parameters ?? [];
  const asked = parameters.filter((parameter) => parameter.in === "query");
  const each = asked.flatMap(({ name }) => (values[name] ?? []).map((value) => [name, `${value}`] as const));
  const required = asked.flatMap(({ name, required: is }) => (is ? [[name, `${values[name]?.[0]}`] as const] : []));
  for (const one of paths) {
    const request = (query: readonly (readonly [string, string])[]) =>
      query.length ? `${one}?${new URLSearchParams(Object.fromEntries(query))}` : one;
    yield request(required);
    for (const pair of each) yield request([...required, pair]);
  }
}

/** The routes that show something of what is withheld, of all that answer a GET. @param asked the status of every route */
async function showing(of: TestService, asked = new Map<string, number>()): Promise<Set<string>> {
  const found = new Set<string>();
  const headers = [{}, await bearerOf(of, signer), await operatorOf(of)];
  for (const operation of operations.filter(({ method }) => method === "GET"))
    for (const path of requestsOf(operation))
      for (const more of operation.definition.security?.length ? headers : [{}]) {
        // Each on a connection of its own, so that both front ends are asked.
        const init = { headers: { ...more, connection: "close" } };
        const response = await fetch(of.url + path, init);
        const text = Buffer.from(await response.arrayBuffer()).toString("latin1");
        asked.set(operation.id, Math.min(asked.get(operation.id) ?? 999, response.status));
        if (secrets.some((secret) => text.includes(secret))) found.add(operation.id);
      }
  return found;
}

/** What an export has of each scope: the ids of its entries, page by page, and the rows of its CSV. */
async function exported(scope: string) {
  const ids: number[] = [];
  let total = 1;
  for (let page = 1; page <= total; page++) {
    const { body } = await service.get(`/audit/export?scope=${scope}&page_size=1&page=${page}`);
    total = body.total;
    for (const { id, payload, withheld_by } of body.entries) {
      expect(payload === null, `${id}`).toBe(withheld_by !== undefined && id !== named);
      ids.push(id);
    }
  }
  const { text } = await service.get(`/audit/export?scope=${scope}&format=csv&page_size=1000`);
  expect(text.trim().split("\r\n").length).toBe(1 + total);
  return ids;
}

const proofsOf = async () => [
  (await service.get(`/log/proof/${attested - 1}?tree_size=${attested + 1}`)).text,
  (await service.get(`/log/sth/${attested}`)).text,
  (await service.get(`/log/consistency?from=${attested - 1}&to=${attested + 1}`)).text,
  (await service.get(`/log/heads?from=1&limit=${attested + 1}`)).text,
];

describe("a withheld payload", () => {
  test("is for the operator to withhold, and not that of every entry", async () => {
    expectProblem(await service.post(`/log/${attested}/withhold`, REASON), 401);
    expectProblem(await service.post(`/log/${attested}/withhold`, REASON, own), 403);
    expectProblem(await service.post("/log/9999/withhold", REASON, operator), 404);
    for (const body of [{}, { reason: "" }, { reason: "x".repeat(501) }, { reason: "x", basis: "x".repeat(201) }])
      expectProblem(await service.post(`/log/${attested}/withhold`, body, operator), 422);
    const refused = await service.post(`/log/${named}/withhold`, REASON, operator);
    expectProblem(refused, 422);
    expect(refused.body.detail).toContain("Only attestations and encrypted claims can be withheld");
    const ofName = { ...REASON, member: "pseudonym" };
    const nameless = await service.post(`/log/${attested}/withhold`, ofName, operator);
    expectProblem(nameless, 422);
    expect(nameless.body.detail).toContain("Only registrations and successions of keys have a pseudonym");
    expectProblem(await service.post(`/log/${named}/withhold`, { ...REASON, member: "fingerprint" }, operator), 422);
  });

  test("is shown by no route afterwards, nor after a restart, and is proven as before", async () => {
    const asked = new Map<string, number>();
    const before = await showing(service, asked);
    // The walk finds it where it was shown.
    expect([...before].sort()).toEqual([
      "get_audit_export",
      "get_claims",
      "get_claims_entry_id",
      "get_graph_fingerprint",
      "get_keys",
      "get_keys_fingerprint",
      "get_keys_search",
      "get_log",
      "get_log_audit_trail",
      "get_log_by_fingerprint_fingerprint",
      "get_log_entry_id",
    ]);
    const refused = [...asked].filter(([, status]) => status >= 400).map(([id]) => id);
    // What is not there: other nodes, requests, trust configurations, full tiles.
    expect(refused.sort()).toEqual([
      "get_follower",
      "get_log_attestation_requests",
      "get_log_attestation_requests_request_id",
      "get_log_tile_version_level_index",
      "get_tlog_tile_level_n1",
      "get_trust_configs_fingerprint",
    ]);
    const proofs = await proofsOf();
    const scopes = async () => [await exported("attestations"), await exported("claims")];
    const ofScopes = await scopes();
    const kept = await service.get(`/log/${attested}`);
    const tag = kept.headers.get("etag")!;

    const { status, body } = await service.post(`/log/${attested}/withhold`, REASON, operator);
    expect(status).toBe(200);
    expect((await service.post(`/log/${claimed}/withhold`, REASON, operator)).status).toBe(200);
    expectProblem(await service.post(`/log/${attested}/withhold`, REASON, operator), 409);
    expectProblem(await service.post(`/log/${body.log_entry_id}/withhold`, REASON, operator), 422);
    const event = (await service.get(`/log/${body.log_entry_id}`)).body;
    expect(event).toMatchObject({
      event_type: "payload_withheld",
      payload: {
        event_type: "payload_withheld",
        entry_id: attested,
        payload_hash: sha256(canonical(kept.body.payload)),
        ...REASON,
      },
      entry_hash: body.entry_hash,
    });
    const registered = (await service.get(`/log/${named}`)).body;
    const ofName = { ...REASON, member: "pseudonym" };
    const name = await service.post(`/log/${named}/withhold`, ofName, operator);
    expect(name.status).toBe(200);
    expectProblem(await service.post(`/log/${named}/withhold`, ofName, operator), 409);
    expect([...(await showing(service))]).toEqual([]);
    const payload = { ...registered.payload, pseudonym: "withheld" };
    const withheld = { ...registered, payload, withheld_by: name.body.log_entry_id };
    expect((await service.get(`/log/${named}`)).body).toEqual(withheld);
    const { fingerprint } = signer;
    expect((await service.get(`/log/${name.body.log_entry_id}`)).body.payload).toEqual({
      ...{ event_type: "payload_withheld", entry_id: named, entry_hash: registered.entry_hash, fingerprint },
      ...{ payload_hash: sha256(canonical(registered.payload)), shown_hash: sha256(canonical(payload)), ...ofName },
    });
    const key = (await service.get(`/keys/${fingerprint}`)).body;
    expect(key).toMatchObject({ pseudonym: "withheld", status: "active", log_entry_id: named });
    for (const text of ["withheld", NAME])
      expect((await service.get(`/keys/search?pseudonym=${text}`)).body.total).toBe(0);
    const shown = await service.get(`/log/${attested}`, { "if-none-match": tag });
    expect(shown.status).toBe(200);
    expect(shown.body).toMatchObject({ id: attested, payload: null, withheld_by: body.log_entry_id });
    expect((await service.get(`/log/${attested}`, { "if-none-match": shown.headers.get("etag")! })).status).toBe(304);
    expect(shown.body.entry_hash).toBe(event.payload.entry_hash);
    expect(await proofsOf()).toEqual(proofs);
    expect((await service.get("/log")).body.total).toBe(await service.entryCount());
    expect((await service.get("/log?title=behind")).body.total).toBe(1);
    expect(await scopes()).toEqual(ofScopes);
    expect((await service.post("/log/verify")).body).toMatchObject({ valid: true });
    expectProblem(await service.get(`/claims/${claimed}`), 410, "gone");
    const { webhooks } = service.server.registry;
    expect(webhooks.eventAt(attested - 1)).toBeUndefined();
    const { id, event_type, entry_hash } = shown.body;
    expect(webhooks.told(attested)).toEqual({ entry_id: id, event_type, entry_hash });
    const { attestation } = receipt;
    const request = {
      manifest: { ...manifest, attestations: [attestation] },
      source_hash: manifest.document.content_hash,
    };
    const judged = (await service.post("/verify", request)).body;
    expect(judged).toMatchObject({
      overall_status: "withheld",
      layer1: { status: "withheld" },
      layer2: { status: "valid" },
    });
    expect(judged.attestations).toMatchObject([
      {
        layer1: { status: "withheld", details: expect.stringContaining(`as entry ${body.log_entry_id} says`) },
        logged: { entry_id: attested, leaf_index: attested - 1, withheld_by: body.log_entry_id },
      },
    ]);
    // The same once more does not bring it back.
    const repeated = await service.post("/attestations", submitted);
    expectProblem(repeated, 410, "gone");
    expect([...(await showing(service))]).toEqual([]);

    const { dataDir } = service.server;
    await service.close();
    service = await startTestService({ SERVICE_DATA_DIR: dataDir });
    expect([...(await showing(service))]).toEqual([]);
    expect(await scopes()).toEqual(ofScopes);
    expect((await service.get(`/log/${named}`)).body).toEqual(withheld);
    expect((await service.get(`/keys/${fingerprint}`)).body).toEqual(key);
    expect((await service.get("/keys/search?pseudonym=withheld")).body.total).toBe(0);
    expect((await service.post("/log/verify")).body).toMatchObject({ valid: true });
    expect(await proofsOf()).toEqual(proofs);
    expectProblem(await service.post("/attestations", submitted), 410, "gone");
    expectProblem(await service.post("/attestations", { ...submitted, intent_statement: "Another." }), 403);
  });
});
