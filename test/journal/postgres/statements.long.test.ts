/**
 * Every condition of the journal's statements, over a real server. For each statement there is a call that takes effect, and
 * calls that differ from it in one point and must change nothing. That every condition is needed is shown, too: without it
 * one of these calls takes effect.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { PgConnection, type Sql, type SqlRow } from "#cairnlog/engine/journal/postgres/connection.js";
import { parseConnectionString } from "#cairnlog/engine/journal/postgres/connection-string.js";
import { SCHEMA_SQL } from "#cairnlog/engine/journal/postgres/operate/schema.js";
import {
  appendRecord,
  beat,
  type Columns,
  release,
  replaceBody,
  sweep,
  takeLead,
  touch,
} from "#cairnlog/engine/journal/postgres/statements.js";
import { freePorts } from "../../cluster/servers/cluster.js";
import { PostgresServer, serversFolder } from "../../cluster/servers/server.js";

const folder = mkdtempSync(join(tmpdir(), "cairnlog-statements-"));
let server: PostgresServer;
let first: PgConnection;
let second: PgConnection;
beforeAll(async () => {
  chmodSync(folder, 0o711);
  const [port] = await freePorts(1);
  const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: "", fsync: "off" };
  server = new PostgresServer({ name: "alone", folder: serversFolder(folder), port: port!, settings });
  await server.create();
  await server.start();
  const target = parseConnectionString(`postgres://postgres@127.0.0.1:${port}/postgres`);
  first = await PgConnection.open(target, target.places[0]!);
  second = await PgConnection.open(target, target.places[0]!);
});
afterAll(async () => {
  first.close();
  second.close();
  await server.stop("SIGQUIT");
  rmSync(folder, { recursive: true, force: true });
});

const run = (statement: Sql, connection = first): Promise<SqlRow[]> => connection.query(statement, 10_000);
const sql = (text: string, connection = first): Promise<SqlRow[]> => run({ text }, connection);

const hashOf = (sequence: number, branch = 0): Buffer => Buffer.alloc(32, 16 * branch + sequence);

/** The journal after five records; the second private change is decided and old, and the third is old. */
beforeEach(async () => {
  await sql(`DROP SCHEMA IF EXISTS cairnlog CASCADE; ${SCHEMA_SQL}
    INSERT INTO cairnlog.lead (epoch, holder, url, sequence, hash, size, acked, beat)
    VALUES (3, 'me', 'http://me', 5, '\\x${hashOf(5).toString("hex")}', 50, 4, 7);
    INSERT INTO cairnlog.record SELECT n, decode(lpad(to_hex(n), 2, '0'), 'hex'), 3, n * 10, 1, 'b', NULL
    FROM generate_series(1, 5) AS n;
    INSERT INTO cairnlog.private_row VALUES ('users', '"ada"', 2, 'old'), ('users', '"alan"', 3, 'old');
    INSERT INTO cairnlog.private_change VALUES
      (2, clock_timestamp() - interval '1 hour', 'p'), (4, clock_timestamp(), 'p'), (5, clock_timestamp() - interval '1 hour', 'p')`);
});

/** Everything that the journal holds. */
const content = (): Promise<unknown> =>
  sql(
    ["lead", "record", "private_change", "private_row"]
      .map((table) => `SELECT '${table}', t::text FROM cairnlog.${table} t`)
      .join(" UNION ALL ")
      .concat(" ORDER BY 1, 2"),
  );

const record = (over: Partial<Columns> = {}): Columns => ({
  sequence: 6,
  epoch: 3,
  firstIndex: 50,
  size: 51,
  previous: hashOf(5),
  hash: hashOf(6),
  body: Buffer.from("body"),
  publicRows: null,
  privateRows: null,
  changes: { tables: [], keys: [], lines: [] },
  ...over,
});
const withPrivate = (over: Partial<Columns> = {}): Columns =>
  record({
    privateRows: "p",
    changes: { tables: ["users", "users"], keys: ['"ada"', '"alan"'], lines: ["new", null] },
    ...over,
  });
const seen = { epoch: 3, holder: "me", beat: 7 } as Parameters<typeof takeLead>[1];
const next = { epoch: 4, firstIndex: 50, size: 50 };

interface Case {
  readonly statement: Sql;
  /** Calls that differ in one point; the name says in which. */
  readonly refused: Readonly<Record<string, Sql>>;
  /** What must be different of the journal, so that the same call changes nothing. */
  readonly refusedAfter: readonly string[];
}

/** A session whose commits wait for no standby. */
const WITHOUT_WAITING = "SET LOCAL synchronous_commit TO local";

const appending = (of: (over?: Partial<Columns>) => Columns): Case => ({
  statement: appendRecord(of(), "me", 5),
  refused: {
    "an earlier epoch": appendRecord(of({ epoch: 2 }), "me", 5),
    "another holder of the same epoch": appendRecord(of(), "you", 5),
    "a record further on": appendRecord(of({ sequence: 7 }), "me", 5),
    "behind a record of another history": appendRecord(of({ previous: hashOf(5, 1) }), "me", 5),
  },
  refusedAfter: [WITHOUT_WAITING],
});

const CASES: Readonly<Record<string, Case>> = {
  append: appending(record),
  "append with private rows": appending(withPrivate),
  "take the lead": {
    statement: takeLead(record(next), seen, "you", "http://you"),
    refused: {
      "an epoch further on": takeLead(record({ ...next, epoch: 5 }), { ...seen, epoch: 4 }, "you", null),
      "a record further on": takeLead(record({ ...next, sequence: 7 }), seen, "you", null),
      "behind a record of another history": takeLead(record({ ...next, previous: hashOf(5, 1) }), seen, "you", null),
      "the leader has given a sign of life": takeLead(record(next), { ...seen, beat: 6 }, "you", null),
      "somebody else had taken it": takeLead(record(next), { ...seen, holder: "them" }, "you", null),
      "nobody had it": takeLead(record(next), { ...seen, holder: null }, "you", null),
    },
    refusedAfter: [WITHOUT_WAITING],
  },
  mark: {
    statement: touch(3, "me", 5, "mark"),
    refused: {
      "an earlier epoch": touch(2, "me", 5, "mark"),
      "another holder": touch(3, "you", 5, "mark"),
      "a record that was given up": touch(3, "me", 4, "mark"),
    },
    refusedAfter: [WITHOUT_WAITING],
  },
  "sign of life": {
    statement: beat(3, "me", 5, "checkpoint"),
    refused: { "an earlier epoch": beat(2, "me", 5, null), "another holder": beat(3, "you", 5, null) },
    refusedAfter: [],
  },
  "give back": {
    statement: release(3, "me", 5),
    refused: { "an earlier epoch": release(2, "me", 5), "another holder": release(3, "you", 5) },
    refusedAfter: [],
  },
  "take a payload from a record": {
    statement: replaceBody(5, Buffer.from("a"), Buffer.from("b")),
    refused: {
      "another payload was taken meanwhile": replaceBody(5, Buffer.from("a"), Buffer.from("c")),
      "a record that is not there": replaceBody(6, Buffer.from("a"), Buffer.from("b")),
    },
    refusedAfter: [WITHOUT_WAITING],
  },
  sweep: {
    statement: sweep(3, "me", 600),
    refused: {
      "an earlier epoch": sweep(2, "me", 600),
      "another holder": sweep(3, "you", 600),
      "nothing is so old": sweep(3, "me", 86_400),
    },
    refusedAfter: ["UPDATE cairnlog.lead SET acked = 1"],
  },
};

/** Of all calls that must change nothing, those that do. */
async function taken({ statement, refused, refusedAfter }: Case): Promise<string[]> {
  const calls = [
    ...Object.entries(refused).map(([name, other]) => ({ name, before: "SELECT 1", other })),
    ...refusedAfter.map((before) => ({ name: before, before, other: statement })),
  ];
  const found: string[] = [];
  for (const { name, before, other } of calls) {
    await sql("BEGIN");
    await sql(before);
    const unchanged = await content();
    await run(other);
    if (!isDeepStrictEqual(await content(), unchanged)) found.push(name);
    await sql("ROLLBACK");
  }
  return found;
}

test.each(Object.keys(CASES))(
  "%s: takes effect as it should, and with one point different not at all",
  async (name) => {
    expect(await taken(CASES[name]!)).toEqual([]);
    const before = await content();
    await run(CASES[name]!.statement);
    expect(await content()).not.toEqual(before);
  },
);

test.each(Object.keys(CASES))("%s: leaves the session as it was, with effect and without", async (name) => {
  const { statement, refused } = CASES[name]!;
  for (const one of [statement, ...Object.values(refused)]) {
    await run(one);
    expect(await sql("SHOW synchronous_commit")).toEqual([{ synchronous_commit: "on" }]);
  }
});

/** A text without one of its conditions, for each: a condition stands between WHERE or AND and the next of them. */
function* withoutCondition(text: string): Iterable<readonly [string, string]> {
  const condition =
    /(?:WHERE|AND)\s+((?!EXISTS)[^\s(]+ (?:=|<=|<|IN|IS NOT DISTINCT FROM) (?:\([^)]*\)|[^()\s]+(?:\([^)]*\))?(?: [+-] (?:\d|make_interval\([^)]*\)))?)|current_setting\('\w+'\) IN \([^)]*\))/g;
  for (const match of text.matchAll(condition)) {
    const at = match.index + match[0].length - match[1]!.length;
    // The condition stays in the text, so that the parameters keep their types.
    yield [match[1]!, `${text.slice(0, at)}(${match[1]} OR TRUE)${text.slice(at + match[1]!.length)}`];
  }
}

/** Columns by which rows find each other: without them a statement does something else, and not more. */
const JOINS = /^p\.|IS NULL$/;

test.each(Object.keys(CASES))("%s: each condition is needed", async (name) => {
  const given = CASES[name]!;
  const conditions = [...withoutCondition(given.statement.text)].filter(([condition]) => !JOINS.test(condition));
  expect(conditions.length).toBeGreaterThanOrEqual(2);
  for (const [condition, text] of conditions) {
    const weaker = (statement: Sql): Sql => ({ text, values: statement.values! });
    const refused = Object.fromEntries(Object.entries(given.refused).map(([key, one]) => [key, weaker(one)]));
    expect(await taken({ ...given, statement: weaker(given.statement), refused }), `without ${condition}`).not.toEqual(
      [],
    );
  }
});

test("what a sweep has removed is known to have been removed, although the lead is taken at the same moment", async () => {
  await sql("BEGIN");
  await run(takeLead(record(next), seen, "you", "http://you"));
  const sweeping = run(sweep(3, "me", 600), second);
  await expect.poll(() => sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).toHaveLength(1);
  await sql("COMMIT");
  await sweeping;
  const [lead] = await sql("SELECT epoch, swept FROM cairnlog.lead");
  const left = await sql("SELECT sequence FROM cairnlog.private_change ORDER BY sequence");
  const isThere = left.some(({ sequence }) => sequence === "2");
  expect({ ...lead, isThere }).toEqual({ epoch: "4", swept: isThere ? "0" : "2", isThere });
});
