/** Which key an event proves, and whether an event that creates a key carries its signature. */
import { expect, test } from "vitest";
import { actingKey, showsPossession } from "#cairnlog/engine/verify/events/possession.js";

test.each([
  ["https://example.org/authorship", { signer_key_fingerprint: "a key" }, "a key"],
  ["endorsement_offer", { endorser_key_fingerprint: "a key", endorsed_key_fingerprint: "another" }, "a key"],
  ["endorsement_offer", { endorser_key_fingerprint: 7 }, undefined],
  ["endorsement_offer", {}, undefined],
  ["key_registration", { fingerprint: "a key" }, undefined],
  ["no such kind", { fingerprint: "a key" }, undefined],
])("%s of %j proves %j", (event_type, payload, key) => {
  expect(actingKey({ event_type, payload })).toBe(key);
});

test.each([
  ["key_registration", { possession_signature: "AA==" }, true],
  ["key_registration", { possession_signature: null }, false],
  ["key_registration", { new_key_signature: "AA==" }, false],
  ["key_succession", { new_key_signature: "AA==" }, true],
  ["key_succession", { possession_signature: "AA==" }, false],
  ["attestation", { possession_signature: "AA==", new_key_signature: "AA==" }, false],
])("%s of %j shows possession: %j", (event_type, payload, shows) => {
  expect(showsPossession({ event_type, payload })).toBe(shows);
});
