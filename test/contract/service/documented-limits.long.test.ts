/**
 * The limits of the OpenAPI document against the service: of every member of a body and every parameter that has one, the
 * value at the limit is not refused for it, and one more is refused with its JSON Pointer.
 */
import { beforeAll, expect, test } from "vitest";
import type { Document } from "../../server/contract.js";
import { type Controlled, startControlled } from "../../server/controlled.js";
import type { Reply } from "../../server/harness.js";
import { bearerOf, proofOf, registeredSigner } from "../../server/proofs.js";
import type { TestSigner } from "../../server/signers.js";
import { accountOf } from "../signing/claimants.js";
import { type Operation, operationsOf } from "../tour.js";

/** Values of a length that are valid, of members in which repeated letters are not. */
const FILLED: Readonly<Record<string, (length: number, before: string) => string>> = {
  email: (length) => `ada@${"example.".repeat(99)}`.slice(0, length - 3).concat("org"),
  ciphertext: (length) => "A".repeat(length - 2).concat("=="),
  attestation_type: (length) => "https://example.org/".padEnd(length, "a"),
  url: (length) => "https://example.org/".padEnd(length, "a"),
  value: (length) => "https://example.org/".padEnd(length, "a"),
  public_key: (length, before) => before.padEnd(length, "\n"),
  new_public_key: (length, before) => before.padEnd(length, "\n"),
  public_key_pem: (length, before) => before.padEnd(length, "\n"),
};

/** Members that examples lack, and without which a limit does not count yet. */
const MORE: Readonly<Record<string, object>> = {
  post_documents_sign: { signature: "AAAA" },
  post_endorsements_offer: { external_identifiers: [{ type: "url", value: "https://example.org/" }] },
};

/** Operations that at their limits change the key that proves them. */
const CHANGES_KEY = ["post_auth_password", "post_keys_succeed"];

/** A limit of the document, and values of the member at it and beyond. */
interface Limit {
  readonly operation: Operation;
  readonly keyword: string;
  /** Names and positions, down to the member. */
  readonly path: readonly string[];
  readonly at: (before: unknown) => unknown;
  readonly beyond: (before: unknown) => unknown;
}

let world: Controlled;
let document: Document;
let ada: TestSigner;
let session: { authorization: string };
let operatorSession: { authorization: string };
beforeAll(async () => {
  world = await startControlled();
  document = await world.service.openApi();
  ada = await registeredSigner(world.service);
  await world.service.post("/users", accountOf(ada));
  const { operatorFingerprint: fingerprint, operatorSign } = world;
  const sign = (message: string | Uint8Array) => operatorSign(Buffer.from(message)).toString("base64");
  [session, operatorSession] = [
    await bearerOf(world.service, ada),
    await bearerOf(world.service, { fingerprint, sign }),
  ];
});

const resolved = (schema: Document): Document =>
  schema.$ref ? document.components.schemas[schema.$ref.split("/").at(-1)] : schema;

/** A schema without null, and with what it refers to. */
const narrowed = (schema: Document): Document =>
  resolved(schema.anyOf?.find((one: Document) => one.type !== "null") ?? schema);

/** A value that fits a schema, as short as can be. */
function least(schema: Document): unknown {
  const { type, required = [], properties, items, minItems = 1, minimum = 0, examples, pattern } = narrowed(schema);
  const known = narrowed(schema).enum ?? examples;
  if (known) return known[0];
  if (type === "object") return Object.fromEntries(required.map((name: string) => [name, least(properties[name])]));
  if (type === "array") return Array.from({ length: minItems }, () => least(items));
  if (type === "integer" || type === "number") return minimum;
  return pattern ? "0".repeat(64) : "url";
}

/** What the values at and beyond a keyword of a schema are, given the value that a request has. */
function* limitsOf(schema: Document, name: string): Iterable<Pick<Limit, "keyword" | "at" | "beyond">> {
  const { minLength, maxLength, minItems, maxItems, maxProperties, minimum, maximum, items, type } = schema;
  const text = (length: number) => (before: unknown) => FILLED[name]?.(length, String(before)) ?? "a".repeat(length);
  const list = (length: number) => () => Array.from({ length }, () => least(items));
  const map = (size: number) => () => Object.fromEntries(Array.from({ length: size }, (_, i) => [`category ${i}`, 0]));
  const number = (value: number) => () => value;
  const step = type === "integer" ? 1 : 0.5;
  // A member that must have a form needs more characters for that.
  if (minLength && !FILLED[name]) yield { keyword: "minLength", at: text(minLength), beyond: text(minLength - 1) };
  if (maxLength) yield { keyword: "maxLength", at: text(maxLength), beyond: text(maxLength + 1) };
  if (minItems) yield { keyword: "minItems", at: list(minItems), beyond: list(minItems - 1) };
  if (maxItems) yield { keyword: "maxItems", at: list(maxItems), beyond: list(maxItems + 1) };
  if (maxProperties) yield { keyword: "maxProperties", at: map(maxProperties), beyond: map(maxProperties + 1) };
  if (minimum > 0) yield { keyword: "minimum", at: number(minimum), beyond: number(minimum - step) };
  if (maximum) yield { keyword: "maximum", at: number(maximum), beyond: number(maximum + step) };
}

function* limitsBelow(operation: Operation, part: Document, path: readonly string[]): Iterable<Limit> {
  const schema = narrowed(part);
  for (const limit of limitsOf(schema, path.at(-1) ?? "")) yield { operation, path, ...limit };
  for (const [name, member] of Object.entries<Document>(schema.properties ?? {}))
    if (name !== "auth") yield* limitsBelow(operation, member, [...path, name]);
  // The items of a batch are requests of another operation.
  if (schema.items && path[0] !== "submissions") yield* limitsBelow(operation, schema.items, [...path, "0"]);
}

const bodySchema = ({ definition }: Operation) => definition.requestBody?.content["application/json"]?.schema;
const parametersOf = ({ definition }: Operation): Document[] =>
  (definition.parameters ?? []).filter((one: Document) => one.in !== "header");

function* everyLimit(): Iterable<Limit> {
  for (const operation of operationsOf(document)) {
    if (bodySchema(operation)) yield* limitsBelow(operation, bodySchema(operation), []);
    for (const { name, schema } of parametersOf(operation))
      for (const limit of limitsOf(schema, name)) yield { operation, path: [name], ...limit };
  }
}

/** A copy of `value` with another one at a path; what is missing on the way is made as `schema` says. */
function replaced(
  value: unknown,
  part: Document,
  path: readonly string[],
  change: (before: unknown) => unknown,
): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return change(value);
  const schema = narrowed(part);
  const before = (value ?? least(schema)) as object;
  const copy = (Array.isArray(before) ? [...before] : { ...before }) as Record<string, unknown>;
  const inside = schema.items ?? schema.properties[name];
  copy[name] = replaced(copy[name] ?? least(inside), inside, rest, change);
  return copy;
}

/** What a request by a key needs so that its form is judged. */
async function proven({ id, definition }: Operation, schema: Document, signer: TestSigner) {
  if (id === "post_auth_password") return { more: await proofOf(world.service, signer) };
  if (schema && narrowed(schema).properties.auth) return { more: { auth: await proofOf(world.service, signer) } };
  const isOperators = ["post_log_freeze", "post_log_entry_id_withhold"].includes(id);
  const takesSession = definition.security.some((scheme: object) => "session" in scheme);
  return takesSession ? { headers: isOperators ? operatorSession : session } : {};
}

/** Sends the example of an operation, by a key of this service, with another value of one member. */
async function send({ operation, path }: Limit, change: (before: unknown) => unknown): Promise<Reply> {
  const parameters = parametersOf(operation);
  const values = Object.fromEntries(
    parameters.flatMap(({ name, example, required }) => (required ? [[name, example]] : [])),
  );
  const isParameter = parameters.some(({ name }) => name === path[0]);
  if (isParameter) values[path[0]!] = change(values[path[0]!]);
  const target = operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(values[name])));
  const query = parameters.flatMap(({ name, in: where }) =>
    where === "query" && name in values ? [[name, String(values[name])]] : [],
  );
  const signer = CHANGES_KEY.includes(operation.id) ? await registeredSigner(world.service) : ada;
  const { headers, more } = await proven(operation, bodySchema(operation), signer);
  const { example, schema } = operation.definition.requestBody?.content["application/json"] ?? {};
  const text = JSON.stringify({ ...example, ...MORE[operation.id] });
  const own = JSON.parse(text.replaceAll(/sha256:[0-9a-f]{64}/g, signer.fingerprint));
  const body = { ...(isParameter ? own : (replaced(own, schema, path, change) as object)), ...more };
  return world.service.send(operation.method, `${target}?${new URLSearchParams(query)}`, {
    headers: headers ?? {},
    ...(schema && { body: JSON.stringify(body) }),
  });
}

/** The answer names the member, or it is about the only key in the request. */
const faultOf = ({ body }: Reply, { path }: Limit): string | undefined =>
  body?.code === "invalid-key"
    ? body.detail
    : body?.errors?.find((error: Document) => error.path === `/${path.join("/")}`)?.message;

const nameOf = ({ operation, path, keyword }: Limit) => `${operation.id} /${path.join("/")} ${keyword}`;

test("beyond each limit the answer names the member; at the limit it is not refused for that", async () => {
  const limits = [...everyLimit()];
  expect(limits.length).toBeGreaterThan(200);
  const wrong: string[] = [];
  const refusals = new Map<Limit, string>();
  for (const limit of limits) {
    const reply = await send(limit, limit.beyond);
    const fault = reply.status === 422 && faultOf(reply, limit);
    if (fault) refusals.set(limit, fault);
    else wrong.push(`${nameOf(limit)}, beyond: ${reply.status} ${reply.text}`);
  }
  // A frozen log takes nothing more.
  const last = ({ operation }: Limit) => Number(operation.id === "post_log_freeze");
  for (const limit of limits.sort((a, b) => last(a) - last(b))) {
    const reply = await send(limit, limit.at);
    if (refusals.has(limit) && faultOf(reply, limit) === refusals.get(limit))
      wrong.push(`${nameOf(limit)}, at: ${reply.status} ${reply.text}`);
  }
  expect(wrong).toEqual([]);
});
