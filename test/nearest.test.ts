/** The known word that was probably meant. */
import { expect, test } from "vitest";
import { nearest } from "#cairnlog/server/settings/nearest.js";

const WORDS = ["serve", "keygen", "attest", "verify", "log", "keys", "SERVICE_DATA_DIR"];

test.each([
  ["atest", "attest"],
  ["attset", "attest"],
  ["servve", "serve"],
  ["verfy", "verify"],
  ["SERVICE_DATADIR", "SERVICE_DATA_DIR"],
  ["SERVICE_DATA_DRI", "SERVICE_DATA_DIR"],
  ["lgo", "log"],
  ["key", "keys"],
  ["dance", undefined],
  ["ab", undefined],
  ["", undefined],
  ["SERVICE_DATABASE", undefined],
])("%s: %s", (word, meant) => {
  expect(nearest(word, WORDS)).toBe(meant);
});
