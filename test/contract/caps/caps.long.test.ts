/**
 * Every limit of the contract: a value at the limit is accepted, one beyond is refused, in the unit of the contract.
 */
import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { expectProblem } from "../../server/harness.js";
import type { Cap } from "./cap.js";
import { allCaps, CapScene } from "./list.js";

/** One, two, three and four bytes of UTF-8; the last is two UTF-16 units. A character is a code point in each. */
const CHARACTERS = ["x", "ß", "日", "🪨"];
const KIB = 1024;

const scene = new CapScene();
beforeAll(() => scene.start());

const charactersOf = ({ unit, asciiOnly }: Cap) =>
  asciiOnly || unit === "items" || unit === "levels" ? ["x"] : CHARACTERS;

async function expectOutside(cap: Cap, size: number, character: string): Promise<void> {
  const { status, body, text } = await cap.send(cap.make(size, character));
  const about = `${size} ${cap.unit} of ${character}: ${text.slice(0, 400)}`;
  expect([status, body.code], about).toEqual([422, "invalid-input"]);
  // The sentence names the limit, so the value is refused only for its size.
  expect(body.errors, about).toEqual([
    { path: cap.path, message: expect.stringMatching(new RegExp(`\\b${cap.max}\\b`)) },
  ]);
}

async function expectWithin(cap: Cap, size: number, character: string): Promise<void> {
  const value = cap.make(size, character);
  cap.taken(await cap.send(value), value);
}

test.each(allCaps(scene).map((cap) => [`${cap.name}: ${cap.min} to ${cap.max} ${cap.unit}`, cap] as const))(
  "%s",
  async (_, cap) => {
    for (const character of charactersOf(cap)) {
      await expectOutside(cap, cap.max + 1, character);
      await expectWithin(cap, cap.max, character);
      if (cap.min === 0) continue;
      await expectOutside(cap, cap.min - 1, character);
      await expectWithin(cap, cap.min, character);
    }
  },
);

/** Whole numbers in queries: path, name, minimum, maximum. */
const NUMBERS: readonly (readonly [path: string, name: string, min: number, max: number])[] = [
  ...[
    "/log",
    "/log/by-fingerprint/{key}",
    "/log/audit-trail?fingerprint={key}",
    "/log/attestation-requests?target={key}",
  ],
  ...["/keys", "/keys/search?pseudonym=a", "/claims?lookup_key=a", "/trust-configs", "/inbox"],
  ...["/endorsements/{key}", "/endorsements/{key}/issued", "/endorsements/revocation-alerts/{key}"],
].map((path) => [path, "per_page", 1, 200] as const);

test.each([...NUMBERS, ["/audit/export", "page_size", 1, 1000], ["/graph/{key}", "max_depth", 0, 8]] as const)(
  "%s: %s is a whole number from %i to %i",
  async (template, name, min, max) => {
    const path = template.replace("{key}", scene.fingerprint);
    const get = (value: number | string) =>
      scene.service.get(`${path}${path.includes("?") ? "&" : "?"}${name}=${value}`, scene.bearer);
    for (const value of [min, max]) expect((await get(value)).status).toBe(200);
    for (const value of [min - 1, max + 1, `${max}.5`, `0${max}`, `+${max}`, ""]) {
      const reply = await get(value);
      expectProblem(reply, 422, "invalid-input");
      expect(reply.body.errors.map((error: { path: string }) => error.path)).toEqual([`/${name}`]);
    }
  },
);

/** Numbers of a trust configuration. */
test.each([
  ["minimum_threshold", 0, 1, 0.001],
  ["decay_per_hop", 0, 1, 0.001],
  ["max_depth", 1, 8, 1],
])("trust configuration: %s is from %i to %i", async (name, min, max, step) => {
  const post = (value: number) =>
    scene.service.post(
      "/trust-configs",
      { fingerprint: scene.fingerprint, minimum_threshold: 0.5, [name]: value },
      scene.bearer,
    );
  for (const value of [min, max]) expect((await post(value)).body).toMatchObject({ [name]: value });
  for (const value of [min - step, max + step]) {
    const reply = await post(value);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors.map((error: { path: string }) => error.path)).toEqual([`/${name}`]);
  }
});

test("claims: by size, not key count; the form in which they are sent does not count", async () => {
  const target = { target_fingerprint: scene.fingerprint, attestation_type: "authorship" };
  const ask = (body: unknown) => scene.service.post("/log/attestation-requests", body, scene.bearer);
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, 1]));
  expect((await ask({ ...target, nonce: randomUUID(), claims: many })).status).toBe(200);
  const text = "🪨".repeat((64 * KIB - 8) / 4);
  const escaped = text.replace(/[\ud800-\udfff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);
  const body = JSON.stringify({ ...target, nonce: randomUUID() });
  const spelt = `${body.slice(0, -1)},   "claims" : { "a" :  "${escaped}" } }`;
  expect(Buffer.byteLength(spelt)).toBeGreaterThan(128 * KIB);
  const reply = await ask(spelt);
  expect(reply.status, reply.text.slice(0, 200)).toBe(200);
  expect(reply.body.claims).toEqual({ a: text });
});
