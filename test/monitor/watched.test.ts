/** Which entries name a key. */
import { expect, test } from "vitest";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { namedIn } from "#cairnlog/server/monitor/watched.js";

const [one, two] = ["a", "b"].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];
const watched = new Set([one, two]);
const named = (payload: Record<string, unknown>) => namedIn({ payload } as unknown as Entry, watched);

test.each<[payload: Record<string, unknown>, named: string[]]>([
  [{}, []],
  [{ fingerprint: one }, [one]],
  [{ signer_key_fingerprint: one.toUpperCase() }, [one]],
  [{ old_fingerprint: one, new_fingerprint: two }, [one, two]],
  [{ fingerprint: one, target_fingerprint: one }, [one]],
  [{ fingerprint: `sha256:${"c".repeat(64)}` }, []],
  [{ fingerprint_of: one }, []],
  [{ note: one }, []],
  [{ fingerprint: [one] }, []],
  [{ fingerprint: null }, []],
])("%j", (payload, expected) => {
  expect(named(payload)).toEqual(expected);
});
