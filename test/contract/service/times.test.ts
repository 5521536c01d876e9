/** Times in requests, as Go, Java and .NET write them: nine decimals, of which six count, and lower-case letters. */
import { beforeAll, expect, test } from "vitest";
import type { Document } from "../../server/contract.js";
import { act, newPair } from "../../server/endorsements.js";
import { expectProblem } from "../../server/harness.js";
import { bearerOf } from "../../server/proofs.js";
import { POLICIES, policy, REQUESTS, type RequestScene, startRequestScene } from "../../server/requestscene.js";
import { newManifest, newSigner, registration, submission } from "../../server/signers.js";

let scene: RequestScene;
beforeAll(async () => {
  scene = await startRequestScene();
});

/** A time in the near future of the service's clock, with these decimals. */
const soon = (decimals: string, letters = "TZ"): string => {
  const seconds = new Date(scene.world.now / 1000 + 86_400_000).toISOString().slice(0, 19);
  return `${seconds.replace("T", letters[0]!)}.${decimals}${letters[1]}`;
};

/** What the service answers to a time, in each place that takes one, and the time that it made of it. */
const PLACES: Readonly<Record<string, (time: string) => Promise<{ status: number; time?: string }>>> = {
  "POST /keys/register expiration_date": async (expiration_date) => {
    const reply = await scene.service.post("/keys/register", registration(newSigner(), "Ada", { expiration_date }));
    return { status: reply.status, time: reply.body.expires_at };
  },
  "POST /keys/succeed expiration_date": async (expiration_date) => {
    const [old, next] = [newSigner(), newSigner()];
    await scene.service.post("/keys/register", registration(old));
    const bearer = await bearerOf(scene.service, old);
    const payload = {
      ...{ old_fingerprint: old.fingerprint, new_public_key: next.publicKey, new_algorithm: "ed25519" },
      ...{ expiration_date },
    };
    const reply = await scene.service.post("/keys/succeed", { payload }, bearer);
    const { body } = await scene.service.get(`/keys/${next.fingerprint}`);
    return { status: reply.status, time: body.expires_at };
  },
  "POST /endorsements/offer valid_until": async (valid_until) => {
    const pair = await newPair(scene.service);
    const reply = await act("offer", pair, { valid_until });
    return { status: reply.status, time: reply.body.payload?.valid_until };
  },
  "POST /log/attestation-requests deadline": async (deadline) => {
    const reply = await scene.service.post(REQUESTS, scene.request({ deadline }), scene.bearer);
    return { status: reply.status, time: reply.body.deadline };
  },
  "POST /log/request-policies effective_from": async (effective_from) => {
    const reply = await scene.service.post(POLICIES, policy({ effective_from }), scene.targetBearer);
    return { status: reply.status, time: reply.body.effective_from };
  },
  "POST /attestations manifest.attestations[].timestamp": async (timestamp) => {
    const first = newManifest();
    const signed = (await scene.service.post("/attestations", submission(scene.asker, first))).body.attestation;
    const manifest = { ...first, attestations: [{ ...signed, timestamp }] };
    return { status: (await scene.service.post("/attestations", submission(scene.target, manifest))).status };
  },
  ...Object.fromEntries(
    [
      "/log/audit-trail?start_date",
      "/log/audit-trail?end_date",
      "/audit/export?start_date",
      "/audit/export?end_date",
    ].map((query) => [
      `GET ${query}`,
      async (time: string) => ({ status: (await scene.service.get(`${query}=${encodeURIComponent(time)}`)).status }),
    ]),
  ),
  ...Object.fromEntries(
    ["since", "until"].map((name) => [
      `GET /graph/{fingerprint}?${name}`,
      async (time: string) => {
        const path = `/graph/${scene.asker.fingerprint}?${name}=${encodeURIComponent(time)}`;
        return { status: (await scene.service.get(path)).status };
      },
    ]),
  ),
};

test.each(Object.keys(PLACES))("%s", async (name) => {
  const send = PLACES[name]!;
  await scene.renew();
  const cut = await send(soon("123456789", "tz"));
  expect(cut.status).toBe(200);
  if (cut.time !== undefined) expect(cut.time).toBe(soon("123456"));
  await scene.renew();
  expect((await send(soon("1234567890"))).status).toBe(422);
});

test("is in all places where a request has a time", async () => {
  const document = await scene.service.openApi();
  const isTime = (schema: Document): boolean =>
    schema.format === "date-time" || /date-time|ISO 8601/.test(schema.description ?? "");
  const found: string[] = [];
  const walk = (place: string, schema: Document): void => {
    if (schema.$ref) return;
    if (isTime(schema)) found.push(place);
    for (const branch of schema.anyOf ?? []) walk(place, branch);
    for (const [name, member] of Object.entries<Document>(schema.properties ?? {}))
      walk(name === "payload" ? place : `${place} ${name}`, member);
  };
  for (const [path, item] of Object.entries<Document>(document.paths))
    for (const [method, { parameters = [], requestBody }] of Object.entries<Document>(item)) {
      const place = `${method.toUpperCase()} ${path.replace("/api/v1", "")}`;
      if (method === "head" || path.includes("/test/")) continue;
      for (const { name, schema, description } of parameters)
        if (isTime({ ...schema, description: schema.description ?? description })) found.push(`${place}?${name}`);
      const schema: Document | undefined = requestBody?.content?.["application/json"]?.schema;
      const name = schema?.$ref?.split("/").at(-1);
      if (schema) walk(place, name ? document.components.schemas[name] : schema);
    }
  const places = Object.keys(PLACES).filter((place) => !place.includes("[]"));
  expect([...new Set(found)].sort()).toEqual(places.sort());
});

test("an answer that names a wrong time says what is taken", async () => {
  const body = scene.request({ deadline: "2030-01-01 00:00:00Z" });
  expectProblem(await scene.service.post(REQUESTS, body, scene.bearer), 422, "invalid-input");
});
