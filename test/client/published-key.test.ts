/** The status of a key that a reader of a published log works out is the one that a service shows (docs/spec §5.1). */
import { expect, test } from "vitest";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { keyFrom } from "#cairnlog/server/client/static/key.js";
import { newSigner } from "../server/signers.js";

const [old, next] = [newSigner(), newSigner()];
const [PAST, FUTURE] = ["2025-06-01T00:00:00.000000Z", "2999-06-01T00:00:00.000000Z"];

/** A key that was registered until then, and what has become of it. */
function entriesOf(
  expiration_date: string | null,
  ...later: readonly ({ readonly event_type: string } | null)[]
): Entry[] {
  const of = ({ fingerprint, publicKey: public_key, algorithm: key_algorithm }: typeof old) => ({
    ...{ fingerprint, public_key, key_algorithm, pseudonym: "Ada", expiration_date: null },
  });
  const events = [
    { ...of(old), event_type: "key_registration", expiration_date },
    ...later.flatMap((event) => (event ? [{ ...of(next), ...event }] : [])),
  ];
  const timestamp = "2025-01-01T00:00:00.000000+00:00";
  return events.map((payload, i) => ({ id: i + 1, event_type: payload.event_type, timestamp, payload }) as never);
}

const REVOKED = { event_type: "key_revocation", fingerprint: old.fingerprint, reason: "lost" };
const SUCCEEDED = { event_type: "key_succession", old_fingerprint: old.fingerprint };

test.each([
  [null, null, "active"],
  [FUTURE, null, "active"],
  [PAST, null, "expired"],
  [FUTURE, REVOKED, "revoked"],
  [PAST, REVOKED, "revoked"],
  [FUTURE, SUCCEEDED, "succeeded"],
  [PAST, SUCCEEDED, "succeeded"],
])("until %s, then %o: %s", (until, end, status) => {
  expect(keyFrom(old.fingerprint, entriesOf(until, end))).toMatchObject({ status, expires_at: until });
});

test.each([
  [null, "active", true],
  [REVOKED, "revoked", false],
  [SUCCEEDED, "succeeded", false],
])("recorded by strangers, then %o: what the key signs after that leaves it %s", (end, status, named) => {
  const own = { fingerprint: old.fingerprint, public_key: old.publicKey, possession_signature: "c2lnbmVk" };
  const entries = entriesOf(null, end, { ...own, event_type: "key_registration" });
  expect(keyFrom(old.fingerprint, entries)).toMatchObject({ status, named });
});
