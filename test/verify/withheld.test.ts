/** Which entries may be served without their payload, whoever says that it is withheld. */
import { expect, test } from "vitest";
import { createHistoryReader, NO_PREDECESSOR } from "#cairnlog/engine/log/apply/entry.js";
import { checkServiceEntry } from "#cairnlog/engine/verify/events/eventcheck.js";
import { EVENT_TYPES } from "#cairnlog/engine/verify/events/kinds.js";
import { payloadHash, withholdingFault } from "#cairnlog/engine/verify/events/withheld.js";
import type { Entry } from "#cairnlog/engine/verify/tree/entry.js";

const HASH = "ab".repeat(32);
const withheld = (event_type: string): Entry => ({
  id: 1,
  timestamp: "2026-01-01T00:00:00.000000Z",
  event_type,
  payload: null,
  withheld_by: 2,
  previous_hash: null,
  entry_hash: HASH,
  chain_version: 2,
  entry_hashes: [{ algorithm: "sha2-256", digest_hex: HASH, is_primary: true }],
});

// The type is not hashed, so whoever serves an entry could take its payload away and call it an end of the log.
test.each(EVENT_TYPES.filter((type) => type !== "encrypted_claim"))("%s: not without its payload", async (type) => {
  const sentence = `The payload of an entry of type "${type}" cannot be withheld.`;
  expect(checkServiceEntry(withheld(type))).toContainEqual({ code: "wrong-event", message: sentence });
  const reader = await createHistoryReader({});
  const read = () => reader.read(Buffer.from(JSON.stringify(withheld(type))), NO_PREDECESSOR, 0, null);
  expect(read).toThrow(sentence);
});

/** An entry that is shown without the name in it. */
const nameless = (event_type: string, more: object = {}): Entry => ({
  ...withheld(event_type),
  payload: { event_type, pseudonym: "withheld", ...more },
});

test.each(EVENT_TYPES.filter((type) => !["key_registration", "key_succession"].includes(type)))(
  "%s: has no name that could be withheld, so its hash counts",
  (type) => {
    const codes = checkServiceEntry(nameless(type)).map(({ code }) => code);
    expect(codes).toContain("hash-mismatch");
    expect(codes).not.toContain("withheld");
  },
);

test("a name is withheld by the one entry that has the hash of what is shown, and nothing else with it", async () => {
  const key = { fingerprint: "sha256:f", public_key: "p", key_algorithm: "ed25519", expiration_date: null };
  const entry = nameless("key_registration", key);
  expect(checkServiceEntry(entry).map(({ code }) => code)).toEqual(["withheld"]);
  const payload = {
    ...{ event_type: "payload_withheld", entry_id: 1, entry_hash: HASH, payload_hash: HASH, reason: "r", basis: null },
    ...{ member: "pseudonym", fingerprint: "sha256:f", shown_hash: payloadHash(entry.payload!) },
  };
  const by = (more: object = {}): Entry => ({
    ...{ ...withheld("payload_withheld"), id: 2, withheld_by: 3 },
    payload: { ...payload, ...more },
  });
  expect(withholdingFault(entry, by())).toBeUndefined();
  const other = { ...entry, payload: { ...entry.payload!, public_key: "q" } };
  for (const fault of [
    withholdingFault(other, by()),
    withholdingFault({ ...entry, payload: null }, by()),
    withholdingFault(entry, by({ member: undefined, shown_hash: undefined })),
    withholdingFault(entry, by({ shown_hash: undefined })),
    withholdingFault(entry, by({ member: "fingerprint" })),
    withholdingFault(entry, by({ entry_hash: "cd".repeat(32) })),
    withholdingFault({ ...entry, payload: { ...entry.payload!, pseudonym: "Ada" } }, by()),
    withholdingFault({ ...entry, payload: { ...entry.payload!, key_algorithm: "\ud800" } }, by()),
    withholdingFault(entry, undefined),
  ])
    expect(fault).toContain("withhold");
  const reader = await createHistoryReader({});
  const read = (one: Entry) => reader.read(Buffer.from(JSON.stringify(one)), NO_PREDECESSOR, 0, null);
  expect(JSON.parse(read(entry).json.toString())).toEqual(entry);
  expect(() => read({ ...entry, withheld_by: 1 })).toThrow("No entry of the operator");
  expect(() => read({ ...entry, payload: { ...entry.payload!, pseudonym: "Ada" } })).toThrow("does not hash");
});

test.each(["encrypted_claim", "https://x-service.example/predicates/authorship/v1"])("%s: perhaps", (type) => {
  expect(checkServiceEntry(withheld(type)).map(({ code }) => code)).toEqual(["withheld"]);
});
