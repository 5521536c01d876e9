/**
 * After a failed write, whether it reached the disk or not, memory equals the disk before anybody learns of the
 * failure.
 */
import { describe, expect, test } from "vitest";
import type { Log } from "#cairnlog/engine/log/log.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import type { KeyRow } from "#cairnlog/engine/store/schema/rows.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openFaultyLog, openTestLog } from "./harness.js";
import { runIn } from "./inline.js";

const KEY = `sha256:${"a".repeat(64)}`;
const row = (pseudonym: string) => ({ fingerprint: KEY, pseudonym }) as KeyRow;
const note = (n: number) => ({ event_type: "note", payload: { n, document_hash: `sha256:${"b".repeat(64)}` } });
/** Number of entries before the failure: more than a full tile. */
const BEFORE = 300;

/** All answers of a log. */
function said(log: Log): unknown {
  const sizes = Array.from({ length: log.size }, (_, i) => i + 1);
  return {
    size: log.size,
    head: log.head(),
    heads: sizes.map((size) => log.treeHead(size)),
    entries: sizes.map((size) => log.entryJsonAt(size - 1)!.toString()),
    notes: log.postings(hashedTerm(POSTING.eventType, "note")).length,
    found: log.match({ search: `sha256:${"b".repeat(64)}` }, 0, 1000),
    key: log.row("keys", KEY),
    totals: log.anchors.totals,
    // For both tree versions, so from both trees.
    proofs: ([1, 2] as const).map((treeVersion) =>
      sizes.map((size) => log.inclusionProof(0, { treeSize: size, treeVersion })),
    ),
    receipt: log.receipt(log.size - 1),
  };
}

describe.each(["not persisted", "persisted anyway"] as const)("a write that fails, %s", (fate) => {
  test("leaves memory like that of a newly opened log", async () => {
    const { log, path, faults } = await openFaultyLog();
    await log.append(Array.from({ length: BEFORE }, (_, n) => note(n)));
    await runIn(log, (transaction) => transaction.put("keys", KEY, row("before")));
    // The row was read, so it is in memory.
    const readKey = () => runIn(log, (transaction) => transaction.get("keys", KEY)?.pseudonym);
    expect(await readKey()).toMatchObject({ value: "before" });
    said(log);

    faults.plan = [fate];
    const proof = Buffer.from("a proof");
    const failing = [
      runIn(log, (transaction) => {
        transaction.put("keys", KEY, row("after"));
        for (let n = 0; n < BEFORE; n++) transaction.append(note(n));
      }),
      log.anchors.replace(log, 7, undefined, { proof, status: "pending", isSettled: false }),
      log.append(note(-1)),
    ];
    // The state that the first caller sees when it is told of the failure.
    const seen = failing[0]!.then(
      () => undefined,
      () => said(log),
    );
    for (const outcome of await Promise.allSettled(failing))
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "storage-failed" } });

    const isThere = fate === "persisted anyway";
    const { log: anew } = await openTestLog({ path });
    expect(anew.size).toBe(isThere ? 2 * BEFORE + 1 : BEFORE);
    const truth = said(anew);
    expect(await seen).toEqual(truth);
    expect(said(log)).toEqual(truth);
    expect(await readKey()).toMatchObject({ value: isThere ? "after" : "before" });
    expect(log.anchors.totals).toMatchObject({ newest: isThere ? 7 : -1 });
    expect(log.lastFailure).toMatchObject({ code: "storage-failed" });
    await anew.close();

    const receipt = await log.append(note(1000));
    expect(receipt.leaf_index).toBe((truth as { size: number }).size);
    expect(log.lastFailure).toBeNull();
    // No entry creates this test's key.
    expect(log.stateDifferences()).toEqual([expect.stringMatching(/^keys .* the entries do not make it$/)]);
    expect(await log.verify()).toMatchObject({ valid: true });
  });
});
