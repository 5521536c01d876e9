/** The table of event kinds: its content, and the events that match a kind. */
import { describe, expect, test } from "vitest";
import {
  ATTESTATION_KIND,
  EVENT_KINDS,
  EVENT_TYPES,
  KEY_MEMBERS,
  kindOf,
  payloadMisfit,
  typesInScope,
} from "#cairnlog/engine/verify/events/kinds.js";
import { AUDIT_SCOPES, FINGERPRINT_MEMBERS } from "#cairnlog/engine/verify/keys/contract.js";

const FINGERPRINT = `sha256:${"a".repeat(64)}`;
const registration = {
  fingerprint: FINGERPRINT,
  public_key: "-----BEGIN PUBLIC KEY-----",
  pseudonym: "Ada",
  key_algorithm: "ed25519",
  expiration_date: null,
};

describe("every kind", () => {
  // docs/spec §2.4.
  test("of the contract is there", () => {
    expect([...EVENT_TYPES].sort()).toEqual([
      "acceptance_revocation",
      "attestation_request",
      "attestation_request_response",
      "encrypted_claim",
      "endorsement_acceptance",
      "endorsement_offer",
      "endorsement_withdrawal",
      "endorser_revocation_alert",
      "key_registration",
      "key_revocation",
      "key_succession",
      "log_continues",
      "log_frozen",
      "operator_key_rotation",
      "payload_withheld",
      "request_policy",
    ]);
  });

  test("is in one audit scope", () => {
    const scoped = AUDIT_SCOPES.flatMap((scope) => typesInScope(scope));
    expect([...scoped].sort()).toEqual([...EVENT_TYPES].sort());
    expect(typesInScope("attestations")).toEqual([]);
  });

  // docs/spec §16.1.
  test("has the webhook event of the contract", () => {
    const told = EVENT_TYPES.filter((type) => EVENT_KINDS[type].webhook !== null);
    expect(Object.fromEntries(told.map((type) => [type, EVENT_KINDS[type].webhook]))).toEqual({
      key_registration: "key.registered",
      key_revocation: "key.revoked",
      endorsement_acceptance: "endorsement.created",
      endorsement_withdrawal: "endorsement.revoked",
      acceptance_revocation: "endorsement.revoked",
    });
    expect(ATTESTATION_KIND.webhook).toBe("attestation.created");
  });

  test("that names endorsing keys, or takes their name, changes the graph, and a registration does not", () => {
    const changing = EVENT_TYPES.filter((type) => EVENT_KINDS[type].changesGraph);
    expect([...changing].sort()).toEqual([
      "acceptance_revocation",
      "endorsement_acceptance",
      "endorsement_offer",
      "endorsement_withdrawal",
      "endorser_revocation_alert",
      "key_revocation",
      "key_succession",
      "operator_key_rotation",
      "payload_withheld",
    ]);
  });

  test("has a label of its own", () => {
    const labels = EVENT_TYPES.map((type) => EVENT_KINDS[type].label);
    expect(new Set(labels).size).toBe(labels.length);
  });

  test("finds its keys among the members that name keys", () => {
    for (const member of FINGERPRINT_MEMBERS) expect(KEY_MEMBERS).toContain(member);
  });
});

describe("kindOf", () => {
  test("takes predicate URLs for attestations, and nothing for types of nobody", () => {
    expect(kindOf("https://x-service.example/predicates/authorship/v1")).toBe(ATTESTATION_KIND);
    expect(kindOf("key_revocation")).toBe(EVENT_KINDS.key_revocation);
    for (const type of ["note", "toString", "__proto__", "", "ftp://example.org/v1"])
      expect(kindOf(type)).toBeUndefined();
  });
});

describe("payloadMisfit", () => {
  const misfit = (payload: object) =>
    payloadMisfit({ event_type: "key_registration", payload: payload as typeof registration });

  test("is nothing for a payload of its kind, whatever else it holds", () => {
    expect(misfit(registration)).toBeUndefined();
    expect(misfit({ ...registration, tags: ["a"] })).toBeUndefined();
    expect(payloadMisfit({ event_type: "note", payload: {} })).toBeUndefined();
  });

  test.each(Object.keys(registration))("names a missing or wrong %s", (member) => {
    const without: Record<string, unknown> = { ...registration };
    delete without[member];
    expect(misfit(without)).toBe(`/${member} is missing.`);
    expect(misfit({ ...registration, [member]: 1 })).toContain(`/${member} must be`);
  });
});
