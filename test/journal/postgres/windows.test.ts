/** A late node that reads records window by window while the leader removes private rows: whenever that is, it has the rows there are. */
import { expect, test } from "vitest";
import { columnsOf, type Lead } from "#cairnlog/engine/journal/postgres/statements.js";
import { tailOf } from "#cairnlog/engine/journal/postgres/tail.js";
import type { JournalRecord } from "#cairnlog/engine/journal/record.js";
import { NO_HASH } from "#cairnlog/engine/store/changeset.js";

type Servers = Parameters<typeof tailOf>[0]["servers"];

/** What each record changes: a name, and whose it is; undefined for nobody's. */
const CHANGES = [
  ["ada", "1"],
  ["grace", "2"],
  ["ada", undefined],
  ["grace", "3"],
  ["alan", "4"],
  ["alan", "5"],
  ["barbara", "6"],
] as const;
const COUNT = CHANGES.length;
/** Records of a window. */
const WIDTH = 2;

const records: ReturnType<typeof columnsOf>[] = [];
for (const [i, [key, user]] of CHANGES.entries()) {
  const row = user === undefined ? undefined : { user_id: user };
  const rows = [{ table: "userNames", key, row }] as unknown as JournalRecord["rows"];
  const previous = records.at(-1)?.hash ?? NO_HASH;
  records.push(columnsOf({ sequence: i + 1, previous, epoch: 1, firstIndex: 0, batch: null, rows }, 0));
}

/** The rows after so many records. */
function rowsAfter(count: number): Map<string, string> {
  const rows = new Map<string, string>();
  for (const [key, user] of CHANGES.slice(0, count))
    if (user === undefined) rows.delete(key);
    else rows.set(key, user);
  return rows;
}

const bigint = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
};

/** A primary with all records, whose leader removes private rows up to one of them before each window. */
function primaryWith(sweeps: readonly number[]) {
  let swept = 0;
  let window = 0;
  const state = { holder: "own", epoch: 1, sequence: COUNT, acked: COUNT, size: 0, hash: records.at(-1)!.hash };
  const lead = (): Lead => ({ ...state, swept, url: null, beat: 0, wanted: null, checkpoint: null });
  const connection = {
    async query({ name = "", values = [] }: { name?: string; values?: readonly number[] }) {
      if (name === "cairnlog-lead") return [lead()];
      if (name !== "cairnlog-window") return [];
      const [after = 0, upTo = 0] = values;
      swept = Math.max(swept, sweeps[window++] ?? 0);
      return [{ sequence: Math.min(upTo, after + WIDTH), hash: records[after - 1]?.hash ?? null }];
    },
    async copy(text: string) {
      const kept = /private_row WHERE sequence <= (\d+)/.exec(text);
      if (kept) {
        // Of each row, the record that has changed it last.
        const last = new Map(CHANGES.map(([key, user], i) => [key, { user, i }]));
        const lines = [...last.values()].filter(({ user, i }) => user !== undefined && i < Number(kept[1]));
        return lines.map(({ i }) => [Buffer.from(records[i]!.privateRows!.trimEnd())]);
      }
      const [after = 0, upTo = 0] = [...text.matchAll(/r\.sequence (?:>|<=) (\d+)/g)].map(([, number]) =>
        Number(number),
      );
      return records.slice(after, upTo).map(({ sequence, body, privateRows }) => {
        const rows = sequence <= swept || text.includes("NULL::text") ? null : Buffer.from(privateRows!);
        return [bigint(sequence), body, null, rows, bigint(swept)];
      });
    },
  };
  const servers = {
    askPrimary: <T>(question: (one: unknown) => Promise<T>) => question(connection),
  } as unknown as Servers;
  return { servers, lead };
}

/** Follows from behind so many records. @returns the rows that the node has then */
async function followed(from: number, sweeps: readonly number[], isPublic = false): Promise<Map<string, string>> {
  const { servers, lead } = primaryWith(sweeps);
  const rows = rowsAfter(from);
  const position = { sequence: from, epoch: 1, hash: records[from - 1]?.hash ?? NO_HASH };
  let expected = from;
  for await (const { record, hash, replacesPrivateRows } of tailOf({
    ...{ servers, position, lead: lead(), upTo: COUNT, isPublic },
  })) {
    expect(record.sequence).toBe(++expected);
    expect(records[expected - 1]!.hash.equals(hash)).toBe(true);
    if (replacesPrivateRows) rows.clear();
    for (const { key, row } of record.rows)
      if (row === undefined) rows.delete(String(key));
      else rows.set(String(key), (row as unknown as { user_id: string }).user_id);
  }
  expect(expected).toBe(COUNT);
  return rows;
}

test("whatever is removed before each window, from wherever the node comes", async () => {
  const choices = Array.from({ length: COUNT + 1 }, (_, i) => i);
  const expected = rowsAfter(COUNT);
  for (const from of [0, 1, 2, 3, 4])
    for (const first of choices)
      for (const second of choices.slice(first))
        for (const third of choices.slice(second)) {
          const found = await followed(from, [first, second, third, COUNT]).catch(String);
          const same =
            found instanceof Map && JSON.stringify([...found].sort()) === JSON.stringify([...expected].sort());
          if (!same) expect(found, `from ${from}, removed ${[first, second, third]}`).toEqual(expected);
        }
  expect(expected.size).toBe(3);
});

test("a node without rights on private rows reads the same records, whatever is removed", async () => {
  for (const swept of [0, 3, COUNT]) expect(await followed(0, [swept], true)).toEqual(new Map());
});
