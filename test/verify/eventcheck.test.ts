/** An entry must be an event of its stated type. The payload decides, since no hash covers the type. */
import { describe, expect, test } from "vitest";
import { BUNDLE, BUNDLE_FORMAT } from "#cairnlog/engine/verify/bundle/format.js";
import { checkServiceEntry, eventMisfit } from "#cairnlog/engine/verify/events/eventcheck.js";
import { EVENT_TYPES, type EventType, eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { chain } from "../log/history/entries.js";

const PREDICATE = "https://x-service.example/predicates/authorship/v1";
const [a, b] = [`sha256:${"a".repeat(64)}`, `sha256:${"b".repeat(64)}`];
const key = {
  ...{ fingerprint: a, public_key: "PEM", pseudonym: "Ada", expiration_date: null },
  key_algorithm: "ed25519" as const,
};
const offer = {
  endorser_key_fingerprint: a,
  endorsed_key_fingerprint: b,
  category: "x-service:human_attestation" as const,
  valid_until: null,
  institutional_metadata: null,
  external_identifiers: null,
};
const change = { ...offer, offer_entry_id: 3, note: null };

/** Payloads of the service from before they named their type. */
const OLD_PAYLOADS: Partial<Record<EventType, Readonly<Record<string, unknown>>>> = {
  key_registration: key,
  key_succession: { ...key, old_fingerprint: b },
  key_revocation: { fingerprint: a },
  endorsement_offer: offer,
  endorsement_acceptance: change,
  endorsement_withdrawal: change,
  acceptance_revocation: change,
  endorser_revocation_alert: {
    endorser_key_fingerprint: a,
    compromised_key_fingerprint: b,
    reason: "lost",
    evidence: null,
  },
  attestation_request: {
    request_id: "r",
    requester_fingerprint: a,
    target_fingerprint: b,
    attestation_type: "authorship",
    nonce: "n",
    intent_statement: null,
    claims: {},
    deadline: "2026-01-01T00:00:00Z",
    status: "open",
    policy_entry_id: null,
  },
  attestation_request_response: {
    request_id: "r",
    responder_fingerprint: b,
    decision: "decline",
    attestation_id: null,
    reason: null,
  },
  request_policy: {
    target_fingerprint: a,
    predicates: {},
    default_action_on_failure: "hold",
    effective_from: "2026-01-01T00:00:00Z",
  },
  encrypted_claim: {
    commitment_alg: "hmac-sha256-ecdh-v1",
    ephemeral_public_key: "k",
    nonce: "n",
    ciphertext: "c",
    commitment: "c",
    lookup_key: "l",
  },
} as const;
const ATTESTATION = {
  attestation_id: "x",
  attestation_type: "authorship",
  signer_key_fingerprint: a,
  document_hash: b,
  manifest_hash: "c".repeat(64),
  document_title: "T",
  signature_algorithm: "ed25519",
  signature: "AAAA",
  intent_statement: null,
  timestamp: "2026-01-01T00:00:00.000000Z",
  tags: [],
};
/** Types that are newer than the rule have no such form. */
const OLD = OLD_PAYLOADS as Readonly<Record<EventType, Readonly<Record<string, unknown>>>>;
const OLD_TYPES = Object.keys(OLD_PAYLOADS) as EventType[];
const ENDED: readonly string[] = ["endorsement_acceptance", "endorsement_withdrawal", "acceptance_revocation"];
const OTHERS = ["note", "attestation", "http://example.org/v1", "", "__proto__", "toString"];

/** The reason why a payload does not fit a type, in an entry of either version. */
const said = (event_type: string, payload: object, chain_version: 1 | 2 | null = 2) =>
  eventMisfit({
    event_type,
    payload: payload as Record<string, unknown>,
    ...(chain_version === null ? {} : { chain_version }),
  });

describe("a payload that names its type", () => {
  test.each(OLD_TYPES)("%s: under its own type alone", (type) => {
    const { payload } = eventOf(type, OLD[type] as never);
    expect(payload.event_type).toBe(type);
    expect(said(type, payload)).toBeUndefined();
    expect(said(type, payload, null)).toBeUndefined();
    for (const other of [...EVENT_TYPES, ...OTHERS, PREDICATE])
      if (other !== type)
        for (const version of [1, 2, null] as const)
          expect(said(other, payload, version)).toBe(
            `The event type is ${JSON.stringify(other)}, but the payload says "${type}".`,
          );
  });

  test.each(OLD_TYPES)("%s: with all of its members", (type) => {
    const { payload } = eventOf(type, OLD[type] as never);
    for (const member of Object.keys(OLD[type])) {
      const { [member]: _, ...without } = payload as Record<string, unknown>;
      expect(said(type, without)).toBe(`/${member} is missing.`);
    }
    expect(said(type, { ...payload, tags: ["further members"] })).toBeUndefined();
  });

  test("that nobody knows", () => {
    expect(said("note", { event_type: "note" })).toBe('The event type "note" is not known.');
    expect(said(PREDICATE, { ...ATTESTATION, event_type: PREDICATE })).toBe(
      `The event type "${PREDICATE}" is not known.`,
    );
    expect(said("note", { event_type: 7 })).toBe('The event type is "note", but the payload says 7.');
  });
});

describe("an old payload, which does not name its type", () => {
  test.each(OLD_TYPES)("%s: is told by its members", (type) => {
    for (const version of [1, 2] as const)
      for (const other of [...EVENT_TYPES, ...OTHERS, PREDICATE])
        if (other === type || (ENDED.includes(type) && ENDED.includes(other)))
          expect(said(other, OLD[type], version)).toBeUndefined();
        else expect({ other, said: said(other, OLD[type], version) }).toEqual({ other, said: expect.any(String) });
    expect(said(type, { ...OLD[type], tags: ["a"] })).toBeUndefined();
  });

  test("of an attestation is one under the predicate of its type alone", () => {
    expect(said(PREDICATE, ATTESTATION)).toBeUndefined();
    for (const other of [...EVENT_TYPES, ...OTHERS, PREDICATE.replace("authorship", "publication")])
      expect({ other, said: said(other, ATTESTATION) }).toEqual({ other, said: expect.any(String) });
    const own = "https://example.org/types/checked";
    expect(said(own, { ...ATTESTATION, attestation_type: own })).toBeUndefined();
    expect(said(`${own}/`, { ...ATTESTATION, attestation_type: own })).toBe(
      `The event type "${own}/" is not the predicate of the attestation type "${own}".`,
    );
    expect(said("https://elsewhere.example/authorship/v1", ATTESTATION)).toBeUndefined();
    expect(said("http://elsewhere.example/authorship/v1", ATTESTATION)).toContain("no https predicate URL");
  });

  test("of version 1 may be that of an event which this service does not know", () => {
    for (const type of ["note", "attestation", "http://example.org/v1", "key_registration"]) {
      expect(said(type, { n: 1 }, 1)).toBeUndefined();
      expect(said(type, { n: 1 }, null)).toBeUndefined();
      expect(said(type, { n: 1 }, 2)).toEqual(expect.any(String));
    }
    expect(said("attestation", ATTESTATION, 1)).toBeUndefined();
    expect(said("http://example.org/v1", ATTESTATION, 1)).toBeUndefined();
    // Some writers omitted members that may be null.
    const { expiration_date: _, ...short } = key;
    expect(said("key_registration", short, 1)).toBeUndefined();
    expect(said("key_revocation", short, 1)).toBe(
      'The event type is "key_revocation", but the payload is that of another event: key_registration.',
    );
    expect(said("note", { fingerprint: a, tags: ["lost"] }, 1)).toBe(
      'The event type is "note", but the payload is that of another event: key_revocation.',
    );
    // With members that no known event has, it may have been another event of its makers.
    expect(said("note", { fingerprint: a, reason: "lost" }, 1)).toBeUndefined();
    expect(said("key_registration", { fingerprint: a, reason: "lost" }, 1)).toBeUndefined();
  });

  test("of a claim may be older than keyed commitments", () => {
    const { ciphertext, commitment, lookup_key } = OLD.encrypted_claim;
    const old = { ciphertext, commitment, lookup_key };
    expect(said("encrypted_claim", old)).toBeUndefined();
    expect(said("encrypted_claim", { ...old, event_type: "encrypted_claim" })).toBe("/commitment_alg is missing.");
    expect(said("key_revocation", old)).toContain("that of another event: encrypted_claim.");
  });

  test("of version 2 is of a known kind", () => {
    expect(said("note", { n: 1 })).toBe('The event type "note" is not known, and it is no https predicate URL.');
    expect(said("key_registration", { n: 1 })).toBe("/fingerprint is missing.");
    expect(said(PREDICATE, { n: 1 })).toBe("/attestation_id is missing.");
  });
});

test("an entry's hashes and its type are checked together", () => {
  const payload = { event_type: "key_revocation", fingerprint: a };
  const [entry] = chain([{ event_type: "key_revocation", payload, chain_version: 2 }]);
  expect(checkServiceEntry(entry!)).toEqual([]);
  expect(checkServiceEntry({ ...entry!, event_type: "note" })).toEqual([
    { code: "wrong-event", message: 'The event type is "note", but the payload says "key_revocation".' },
  ]);
  const wrong = { ...entry!, event_type: "note", entry_hash: "0".repeat(64) };
  expect(checkServiceEntry(wrong).map(({ code }) => code)).toEqual(["hash-mismatch", "primary-digest", "wrong-event"]);
  expect(checkServiceEntry({ ...entry!, payload: [] } as never).map(({ code }) => code)).toEqual(["malformed-entry"]);
});

describe("what the payload of an attestation may hold", () => {
  const { entry_hash, ...placed } = chain([{ event_type: PREDICATE, payload: ATTESTATION, chain_version: 2 }])[0]!;
  /** What a receipt's check says of an entry with this payload: that is complete, or the payload is at fault. */
  const inReceipt = (payload: object): string | undefined => {
    const { attestation_id: id, attestation_type: type, document_hash: content_hash, ...logged } = ATTESTATION;
    const { signer_key_fingerprint, signature_algorithm, signature, timestamp } = logged;
    const attestation = { id, type, scope: { content_hash }, signer_key_fingerprint, signature_algorithm, signature };
    const misfit = BUNDLE(
      {
        format: BUNDLE_FORMAT,
        manifest: { document: { title: "T", content_hash }, attestations: [] },
        attestation: { ...attestation, timestamp },
        public_key: "PEM",
        entry: { ...placed, entry_hash, payload },
      },
      "",
    )!;
    return misfit === "/proof is missing." ? undefined : misfit.replace("/entry/payload", "");
  };

  test.each([...Object.keys(ATTESTATION), "signed_payload_hash"])(
    "%s: is the same for entries and receipts",
    (name) => {
      const without: Record<string, unknown> = { ...ATTESTATION };
      delete without[name];
      expect(inReceipt(ATTESTATION)).toBeUndefined();
      expect(inReceipt(without) === undefined, name).toBe(said(PREDICATE, without) === undefined);
      for (const value of [5, null, "", "authorship", "c".repeat(64), [], ["a"], [5], {}, true]) {
        const payload = { ...ATTESTATION, [name]: value };
        const isOfType = name === "attestation_type" && value !== "authorship";
        if (!isOfType) expect(inReceipt(payload), JSON.stringify(value)).toBe(said(PREDICATE, payload));
      }
    },
  );
});
