/** What an entry must say that the log made of a policy. */
import { expect, test } from "vitest";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { deviation, OF_ENTRY } from "#cairnlog/server/client/log/expected.js";

const TIME = "2026-03-01T08:00:00.000000Z";
const content = { target_fingerprint: "sha256:00", predicates: { all: [] }, default_action_on_failure: "allow" };

/** The member in which an entry with this moment differs, for a policy that was published without one. */
function judged(effective_from: unknown): string | undefined {
  const payload = { event_type: "request_policy", ...content, effective_from };
  const entry = { event_type: "request_policy", timestamp: TIME, payload } as unknown as Entry;
  return deviation(entry, { event_type: "request_policy", payload: { ...content, effective_from: OF_ENTRY } });
}

test("a policy without effective_from is in force from its entry on, and from no other moment", () => {
  expect(judged(TIME)).toBeUndefined();
  for (const wrong of ["2099-01-01T00:00:00.000000Z", "2026-03-01T08:00:00.000001Z", "", null, undefined])
    expect(judged(wrong), String(wrong)).toBe("effective_from");
});
