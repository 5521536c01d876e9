/** The entries of this suite: tags, types and words of titles that certain shares of all entries have. */
import type { EventInput } from "cairnlog";
import { attestation } from "../tails/log.js";

/** A number of 32 bits, scattered; the same in every run. */
export function scattered(n: number, seed: number): number {
  let bits = Math.imul(n + 1, 0x9e3779b1) ^ Math.imul(seed + 7, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d);
  bits = Math.imul(bits ^ (bits >>> 12), 0x297a2d39);
  return (bits ^ (bits >>> 15)) >>> 0;
}

/** So many tags. */
export const numbered = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`);
const shared = (tags: readonly string[], share: number) => tags.map((tag) => [tag, share] as const);

/** Tags, and which share of all entries has them, each independent of the others. */
const TAGS = [
  ...shared(["all"], 1),
  ...shared(["most"], 9 / 10),
  ...shared(["half"], 1 / 2),
  ...shared(numbered("two thirds", 4), 2 / 3),
  ...shared(numbered("third", 2), 1 / 3),
  ...shared(numbered("twentieth", 6), 1 / 20),
];
/** As many entries have each of these tags, and no entry has two of them. */
const NARROW_TAGS = 150;
export const TYPES = ["authorship", "review", "approval"].map((name) => `https://example.org/predicates/${name}`);
const SIGNERS = 1_000;
/** A word that begins with one of these is in one title of 16. */
const INITIALS = "abcdefgh";
/** Longer than what a posting holds of a word. */
export const LONG_WORD = "internationalizations";
/** Entries that have words which later ones have not. */
const EARLY = 20_000;
/** The document of one entry of 30. */
export const SAME_DOCUMENT = "ab".repeat(32);

const fingerprint = (signer: number) => `sha256:${signer.toString(16).padStart(64, "f")}`;
export const SIGNER = fingerprint(7);

const hasShare = (n: number, seed: number, share: number) => scattered(n, seed) < share * 2 ** 32;

function titleOf(n: number): string {
  const words = ["report", `w${scattered(n, 100) % 5_000}`];
  for (const [i, initial] of [...INITIALS].entries())
    if (hasShare(n, 110 + i, 1 / 16)) words.push(`${initial}${scattered(n, 101) % 3_000}`);
  if (n < EARLY && n % 2) words.push(`z${n}`);
  if (n < EARLY && n % 30 === 0) words.push(LONG_WORD);
  return words.join(" ");
}

export function event(n: number): EventInput {
  const tags = TAGS.filter(([, share], i) => hasShare(n, i, share)).map(([tag]) => tag);
  const scatteredDocument = [90, 91].map((seed) => scattered(n, seed).toString(16).padStart(8, "0")).join("");
  const document = n % 30 === 7 ? SAME_DOCUMENT : scatteredDocument.padEnd(64, "0");
  // The first type has half of the entries.
  const type = TYPES[Math.max(0, (scattered(n, 80) % 4) - 1)]!;
  return {
    event_type: type,
    payload: {
      ...attestation(n).payload,
      attestation_type: type,
      document_title: titleOf(n),
      document_hash: `sha256:${document}`,
      manifest_hash: document,
      signer_key_fingerprint: fingerprint(scattered(n, 81) % SIGNERS),
      tags: [...tags, `narrow ${scattered(n, 82) % NARROW_TAGS}`],
    },
  };
}
