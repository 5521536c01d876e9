/**
 * What two answers to requests of one kind have in common. Texts and numbers of the request, and of the keys that it is about,
 * are named by where they stand there; what the service makes up (ids, times, hashes, signatures) by what it is. Two answers
 * that differ then hold something that their requests do not decide: mostly a part of another's.
 */
import { createPublicKey } from "node:crypto";
import type { Said } from "../front/connections.js";
import { sha256, type TestSigner } from "../signers.js";
import { nameOf, type Prepared } from "../writes.js";

/** Text or number → what it is. */
export type Facts = ReadonlyMap<string | number, string>;

/** Shorter texts are no names of anything. */
const SHORTEST_PART = 8;

export function factsOf({ write, signer, others }: Prepared): Facts {
  const facts = new Map<string | number, string>();
  const add = (value: string | number, name: string) => {
    if (!facts.has(value)) facts.set(value, name);
  };
  const key = (of: TestSigner, name: string) => {
    add(of.fingerprint, `${name}'s fingerprint`);
    add(of.publicKey.trim(), `${name}'s key`);
    add(nameOf(of), `${name}'s name`);
  };
  key(signer, "the signer");
  for (const [i, other] of others.entries()) key(other, `the other ${i}`);
  const walk = (value: unknown, name: string): void => {
    if (typeof value === "string" || (typeof value === "number" && Number.isInteger(value))) add(value, name);
    if (typeof value === "string" && value.includes("BEGIN PUBLIC KEY")) {
      const spki = createPublicKey(value).export({ type: "spki", format: "der" });
      add(`sha256:${sha256(spki)}`, `fingerprint of ${name}`);
    }
    if (typeof value === "object" && value !== null)
      for (const [member, part] of Object.entries(value)) walk(part, `${name}/${member}`);
  };
  walk(write.body, "");
  for (const [i, part] of write.path.split("/").entries()) add(/^\d+$/.test(part) ? Number(part) : part, `path ${i}`);
  return facts;
}

/** What the service makes up, by its form. */
const MADE: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "(time)"],
  [/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "(uuid)"],
  [/(?<!sha256:)\b[0-9a-f]{64}\b/g, "(hash)"],
  [/\b[0-9A-HJKMNP-TV-Z]{5}(-[0-9A-HJKMNP-TV-Z]{5}){7}\b/g, "(recovery key)"],
  [/(?<=\bentry )\d+/g, "(number)"],
  [/^mixed-\d+$/, "(request id)"],
  [/^[A-Za-z0-9+/]{80,}={0,2}$/g, "(signature)"],
];
/** Numbers that depend on what came before. */
const SEQUENCE = /(^|_)(id|index|size)$/;

/** `value` in this form. Its members keep their order. */
export function alike(value: unknown, facts: Facts, member = ""): unknown {
  if (typeof value === "number") return facts.get(value) ?? (SEQUENCE.test(member) ? "(number)" : value);
  if (typeof value === "string") return textAlike(value, facts);
  if (Array.isArray(value)) return value.map((item) => alike(item, facts, member));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, alike(part, facts, name)]));
}

function textAlike(text: string, facts: Facts): string {
  const exactly = facts.get(text) ?? facts.get(text.trim());
  if (exactly !== undefined) return exactly;
  let named = text;
  for (const [part, name] of facts)
    if (typeof part === "string" && part.length >= SHORTEST_PART) named = named.replaceAll(part, `(${name})`);
  for (const [form, name] of MADE) named = named.replace(form, name);
  return named;
}

/** Of this connection, this moment, or this client's count. */
const PASSING =
  /^(date|x-request-id|connection|keep-alive|transfer-encoding|ratelimit.*|retry-after|content-length|uwebsockets)$/;

/** The headers that the request decides, but for its length. */
export const lastingHeaders = ({ headers }: Said): Record<string, unknown> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !PASSING.test(name)));
