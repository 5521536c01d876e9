/** The state of an anchoring proof, and what happens to the proofs of imported entries. */
import { expect, test } from "vitest";
import { isProofOf, openPromises, statusOf } from "#cairnlog/engine/log/anchor/proof.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import {
  append,
  attestation,
  bitcoin,
  detached,
  HEADER,
  hash,
  hex,
  pending,
  type Tree,
  timestamp,
} from "../../verify/ots/otsbytes.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "../harness.js";
import { chain } from "../history/entries.js";

const SHA256 = hex("08");
const DIGEST = hash("sha256", Buffer.from("an entry"));
const [A, B] = ["https://a.example", "https://b.example"] as const;
const leaf = (...attestations: Buffer[]): Tree => ({ attestations, operations: [] });
const below = (...operations: (readonly [Buffer, Tree])[]): Tree => ({ attestations: [], operations });
const [one, two] = [append(hex("01")), append(hex("02"))] as const;

interface Case {
  readonly tree: Tree;
  readonly status: "pending" | "confirmed";
  /** The open promises: the message made from the digest, and the calendars that promised. */
  readonly open: (digest: Buffer) => { message: Buffer; uris: string[] }[];
}

const unknown = attestation("0102030405060708", hex("ff"));
const CASES: Record<string, Case> = {
  "a promise": { tree: leaf(pending(A)), status: "pending", open: (message) => [{ message, uris: [A] }] },
  "promises of two": {
    tree: leaf(pending(A), pending(B)),
    status: "pending",
    open: (message) => [{ message, uris: [A, B] }],
  },
  "an attestation of no known kind": { tree: leaf(unknown), status: "pending", open: () => [] },
  "a promise beside one of no known kind": {
    tree: leaf(pending(A), unknown),
    status: "pending",
    open: (message) => [{ message, uris: [A] }],
  },
  "a block": { tree: below([SHA256, leaf(bitcoin(7))]), status: "confirmed", open: () => [] },
  "a block for a message that is no Merkle root": {
    tree: below([one, leaf(bitcoin(7))]),
    status: "pending",
    open: () => [],
  },
  "a promise that was kept": {
    tree: { attestations: [pending(A)], operations: [[SHA256, leaf(bitcoin(7))]] },
    status: "confirmed",
    open: () => [],
  },
  "a block, and a promise elsewhere": {
    tree: below([one, leaf(pending(B))], [two, below([SHA256, leaf(bitcoin(7))])]),
    status: "confirmed",
    open: (digest) => [{ message: hex(digest, "01"), uris: [B] }],
  },
};
const proofOf = (digest: Buffer, { tree }: Case) => detached(digest, timestamp(tree));

test.each(Object.entries(CASES))("%s", (_, known) => {
  const proof = proofOf(DIGEST, known);
  expect(statusOf(proof)).toBe(known.status);
  const open = openPromises(proof).map(({ message, uris }) => ({ message: Buffer.from(message), uris }));
  expect(open).toEqual(known.open(DIGEST));
});

test("a proof is one of its own digest alone", () => {
  const rest = timestamp(leaf(pending(A)));
  expect(isProofOf(detached(DIGEST, rest), DIGEST)).toBe(true);
  expect(isProofOf(detached(DIGEST, rest), hash("sha256", DIGEST))).toBe(false);
  expect(isProofOf(detached(DIGEST, rest), DIGEST.subarray(1))).toBe(false);
  // The same bytes under the label of another hash function.
  expect(isProofOf(hex(HEADER, "67", DIGEST, rest), DIGEST)).toBe(false);
  expect(isProofOf(hex(HEADER, "02", DIGEST.subarray(0, 20), rest), DIGEST.subarray(0, 20))).toBe(false);
  for (const bytes of ["", "ff", HEADER]) expect(isProofOf(hex(bytes), DIGEST)).toBe(false);
});

test("imported entries keep their proofs, and more is expected of those that calendars owe something", async () => {
  const known = Object.entries(CASES);
  // No hash covers a proof, so the entries are made first and get their proofs later.
  const entries = chain([...known.map(() => ({})), {}, {}]).map((entry, i) => {
    const found = known[i]?.[1];
    if (found) return { ...entry, ots_proof: proofOf(Buffer.from(entry.entry_hash, "hex"), found).toString("base64") };
    // One entry whose proof cannot be read, and one without a proof.
    return i === known.length ? { ...entry, ots_proof: "AAAA" } : entry;
  });
  const path = `${temporaryFolder()}/log`;
  const { warnings } = await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, entries);
  expect(warnings.map(({ id, code }) => [id, code])).toEqual([[known.length + 1, "unreadable-proof"]]);
  const { log } = await openTestLog({ path });
  expect([...log.entries()]).toEqual(entries);
  const statuses = known.map(([, { status }]) => status);
  for (const [i, status] of [...statuses, "pending"].entries())
    expect(log.anchors.row(i)).toMatchObject({
      status,
      anchored_at: entries[i]!.timestamp,
      updated_at: entries[i]!.timestamp,
    });
  expect(log.anchors.row(known.length + 1)).toBeUndefined();
  expect(log.anchors.totals).toEqual({
    newest: known.length,
    pending: statuses.filter((status) => status === "pending").length + 1,
    confirmed: statuses.filter((status) => status === "confirmed").length,
  });
  const isOpen = ({ status, open }: Case) => status === "pending" || open(DIGEST).length > 0;
  expect([...log.anchors.unsettled()].map(({ leafIndex }) => leafIndex)).toEqual(
    known.flatMap(([, found], i) => (isOpen(found) ? [i] : [])),
  );
});
