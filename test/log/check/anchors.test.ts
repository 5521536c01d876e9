/** The tables of anchors must agree with one another and with the log. */
import { expect, test } from "vitest";
import { checkAnchors } from "#cairnlog/engine/log/check/checks.js";
import type { RowChange } from "#cairnlog/engine/store/changeset.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../harness.js";

const SIZE = 10;
const [MOMENT, LATER] = ["2025-01-01T00:00:00.000000Z", "2025-01-02T00:00:00.000000Z"];
const PENDING = { status: "pending", anchored_at: MOMENT };

const anchor = (key: number, status: string): RowChange => ({
  table: "anchors",
  key,
  row: { proof: Buffer.from("a proof"), status, anchored_at: MOMENT, updated_at: LATER },
});
const work = (key: number, row: object): RowChange => ({ table: "anchorWork", key, row });
const totals = (newest: number, pending: number, confirmed: number): RowChange => ({
  table: "anchorTotals",
  key: "log",
  row: { newest, pending, confirmed },
});
const counted = (newest: number, pending: number, confirmed: number) => JSON.stringify({ newest, pending, confirmed });

async function said(rows: readonly RowChange[]): Promise<string[]> {
  const store = openStore({ path: temporaryFolder(), mapSize: MAP_SIZE });
  const after = store.position().sequence;
  await store.commit({ after, position: null, batches: [], rows, tiles: [] });
  const sentences = [...checkAnchors(store, { size: SIZE, lastId: SIZE })];
  await store.close();
  return sentences;
}

/** One anchor that waits, one that is confirmed and expects more, and one that is complete. */
const SOUND = [
  anchor(2, "pending"),
  anchor(5, "confirmed"),
  anchor(SIZE - 1, "confirmed"),
  work(2, PENDING),
  work(5, { ...PENDING, status: "confirmed" }),
  totals(SIZE - 1, 1, 2),
];
/** The sound rows with some in the place of others, or beside them. */
const changed = (...rows: RowChange[]): RowChange[] => {
  const others = SOUND.filter(({ table, key }) => !rows.some((row) => row.table === table && row.key === key));
  return [...others, ...rows];
};

const CASES: [string, RowChange[], string[]][] = [
  ["nothing", [], []],
  ["anchors of every state", SOUND, []],
  ["totals that count nothing", [totals(-1, 0, 0)], []],
  [
    "an anchor beyond the last entry",
    changed(anchor(SIZE, "confirmed"), totals(SIZE, 1, 3)),
    [`anchors ${SIZE}: entry ${SIZE + 1} is anchored, but the log has ${SIZE} entries.`],
  ],
  [
    "an anchor that nobody goes on with",
    changed(anchor(3, "pending"), totals(SIZE - 1, 2, 2)),
    ["anchors 3: it waits for its block, but anchorWork has no row for it."],
  ],
  [
    "totals with another newest anchor",
    changed(totals(SIZE - 2, 1, 2)),
    [`anchorTotals: ${counted(SIZE - 2, 1, 2)} is stored, but the anchors make ${counted(SIZE - 1, 1, 2)}.`],
  ],
  [
    "totals with another number of waiting anchors",
    changed(totals(SIZE - 1, 0, 2)),
    [`anchorTotals: ${counted(SIZE - 1, 0, 2)} is stored, but the anchors make ${counted(SIZE - 1, 1, 2)}.`],
  ],
  [
    "totals with another number of confirmed anchors",
    changed(totals(SIZE - 1, 1, 3)),
    [`anchorTotals: ${counted(SIZE - 1, 1, 3)} is stored, but the anchors make ${counted(SIZE - 1, 1, 2)}.`],
  ],
  [
    "no totals",
    [anchor(0, "confirmed")],
    [`anchorTotals: ${counted(-1, 0, 0)} is stored, but the anchors make ${counted(0, 0, 1)}.`],
  ],
  ["work on no anchor", changed(work(7, PENDING)), ["anchorWork 7: it does not match the anchor."]],
  [
    "work on an anchor of another state",
    changed(work(2, { ...PENDING, status: "confirmed" })),
    ["anchorWork 2: it does not match the anchor."],
  ],
  [
    "work on an anchor of another time",
    changed(work(2, { ...PENDING, anchored_at: LATER })),
    ["anchorWork 2: it does not match the anchor."],
  ],
];
test.each(CASES)("%s", async (_, rows, sentences) => {
  expect(await said(rows)).toEqual(sentences);
});
