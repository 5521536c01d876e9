/** Which entries may be served without their payload, whoever says that it is withheld. */
import { expect, test } from "vitest";
import { createHistoryReader, NO_PREDECESSOR } from "#cairnlog/engine/log/apply/entry.js";
import { checkServiceEntry } from "#cairnlog/engine/verify/events/eventcheck.js";
import { EVENT_TYPES } from "#cairnlog/engine/verify/events/kinds.js";
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

test.each(["encrypted_claim", "https://x-service.example/predicates/authorship/v1"])("%s: perhaps", (type) => {
  expect(checkServiceEntry(withheld(type)).map(({ code }) => code)).toEqual(["withheld"]);
});
