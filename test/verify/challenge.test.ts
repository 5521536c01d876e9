/** The bytes that bind a challenge, against hashlib and json of Python. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  type ChallengePurpose,
  type ChallengeTerms,
  challengeNonce,
  isChallengeNonce,
  requestAct,
} from "#cairnlog/engine/verify/events/possession.js";

const python = (program: string, input: unknown) =>
  JSON.parse(execFileSync("python3", ["-c", program], { input: JSON.stringify(input), encoding: "utf8" }));

const FINGERPRINT = `sha256:${"0f".repeat(32)}`;
const ACT = "c3".repeat(32);
const TERMS: ChallengeTerms = {
  origin: "https://log.example",
  purpose: "general",
  fingerprint: FINGERPRINT,
  act: null,
};

const NONCE = `
import base64, hashlib, json, sys
def url(raw): return base64.urlsafe_b64encode(raw).decode().rstrip("=")
out = []
for terms, random in json.load(sys.stdin):
    random = bytes.fromhex(random)
    lines = ["service.auth.v1", terms["origin"], terms["purpose"], terms["fingerprint"], url(random), terms["act"] or ""]
    bound = hashlib.sha256("".join(line + "\\n" for line in lines).encode()).digest()[:16]
    out.append("service.auth.v1:%s:%s:%s" % (terms["purpose"], terms["fingerprint"], url(random + bound)))
json.dump(out, sys.stdout)
`;

const ACTS = `
import hashlib, json, sys
out = []
for method, path, body in json.load(sys.stdin):
    text = json.dumps({"body": body, "method": method, "path": path}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    out.append(hashlib.sha256(text.encode()).hexdigest())
json.dump(out, sys.stdout)
`;

describe("a nonce", () => {
  test("has the bytes that Python computes", () => {
    const cases = (["login", "general", "recovery"] as const).flatMap((purpose) =>
      ["https://log.example", "http://127.0.0.1:8080", "http://[::1]:8080"].flatMap((origin) =>
        [null, ACT].map((act) => [{ ...TERMS, purpose, origin, act }, randomBytes(16)] as const),
      ),
    );
    const expected = python(
      NONCE,
      cases.map(([terms, random]) => [terms, random.toString("hex")]),
    );
    expect(cases.map(([terms, random]) => challengeNonce(terms, random))).toEqual(expected);
    for (const [at, [terms]] of cases.entries()) expect(isChallengeNonce(expected[at], terms)).toBe(true);
  });

  test("is taken for exactly its own terms", () => {
    const nonce = challengeNonce(TERMS, randomBytes(16));
    expect(isChallengeNonce(nonce, TERMS)).toBe(true);
    const others: Partial<ChallengeTerms>[] = [
      { origin: "https://evil.example" },
      { origin: "http://log.example" },
      { origin: "https://log.example:8443" },
      { purpose: "login" },
      { purpose: "recovery" },
      { fingerprint: `sha256:${"0e".repeat(32)}` },
      { act: ACT },
    ];
    for (const other of others) expect(isChallengeNonce(nonce, { ...TERMS, ...other })).toBe(false);
  });

  test("is not taken when it has any other form", () => {
    const nonce = challengeNonce(TERMS, randomBytes(16));
    const bad = ["", "x", nonce.slice(0, -1), `${nonce}A`, `${nonce}=`, ` ${nonce}`, nonce.replace("v1", "v2")];
    // The last character has two bits that mean nothing: it has one spelling all the same.
    const last = nonce.at(-1)!;
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (const other of alphabet) if (other !== last) bad.push(nonce.slice(0, -1) + other);
    for (const text of bad) expect(isChallengeNonce(text, TERMS), text).toBe(false);
    const random = `service.auth.v1:general:${FINGERPRINT}:${randomBytes(32).toString("base64url")}`;
    expect(isChallengeNonce(random, TERMS)).toBe(false);
  });

  test("cannot be made to mean other terms by line feeds inside them", () => {
    const random = Buffer.alloc(16, 7);
    const one = challengeNonce({ ...TERMS, origin: "https://a\ngeneral" }, random);
    const two = challengeNonce(
      { ...TERMS, origin: "https://a", purpose: "general\ngeneral" as ChallengePurpose },
      random,
    );
    expect(one).not.toBe(two);
  });
});

describe("an act", () => {
  test("is the hash that Python computes, of a body without what follows the challenge", () => {
    const bodies: Record<string, unknown>[] = [
      {},
      { payload: { fingerprint: FINGERPRINT } },
      { b: [1, 2.5, true, null, { z: "ä€", a: "\u2028" }], a: "é" },
      { password: "correct horse", current_password: null },
    ];
    const cases = bodies.map((body) => ["POST", "/api/v1/keys/revoke", body] as const);
    const expected = python(ACTS, cases);
    expect(cases.map((one) => requestAct(...one))).toEqual(expected);
    const proof = { auth: { challenge_id: "x" }, challenge_id: "x", challenge_signature: "y", chain_signature: "z" };
    expect(cases.map(([method, path, body]) => requestAct(method, path, { ...proof, ...body }))).toEqual(expected);
  });

  test("differs with each part of the request", () => {
    const body = { payload: { fingerprint: FINGERPRINT } };
    const acts = [
      requestAct("POST", "/api/v1/keys/revoke", body),
      requestAct("DELETE", "/api/v1/keys/revoke", body),
      requestAct("POST", "/api/v1/keys/succeed", body),
      requestAct("POST", "/api/v1/keys/revoke", { payload: { fingerprint: "other" } }),
      requestAct("POST", "/api/v1/keys/revoke", { payload: { ...body.payload, auth: null } }),
    ];
    expect(new Set(acts).size).toBe(acts.length);
    for (const act of acts) expect(act).toMatch(/^[0-9a-f]{64}$/);
  });
});
