/**
 * What a leader may believe, one false belief a test: that a record is decided, that it still leads, that a look is new. Over
 * real servers that are stopped at the step in question, so each test says yes or no in a second or two.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { LEASE_MS } from "#cairnlog/engine/journal/postgres/journal.js";
import { eraseFromJournal } from "#cairnlog/engine/journal/postgres/operate/erase.js";
import { freeze } from "#cairnlog/engine/log/operator/entries.js";
import { type Cluster, startCluster } from "../../cluster/servers/cluster.js";
import { Link } from "../../cluster/servers/link.js";
import { Node, newJournal, outcome } from "./node.js";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.remove());

let url: string;
let database: string;
let leader: Node;
beforeEach(async () => {
  url = await newJournal(cluster);
  database = url.split("/").at(-1)!;
  leader = await Node.open(url);
  await leader.lead();
});

const note = (n: number) => ({ event_type: "note", payload: { n } });
const query = (sql: string) => cluster.primary.query(sql, database);
const records = async () => Number((await query("SELECT count(*) FROM cairnlog.record"))[0]![0]);

test("a record that the primary has, and no standby shows, is not acknowledged", async () => {
  for (const standby of cluster.standbys) await standby.query("SELECT pg_wal_replay_pause()");
  const before = await records();
  const appended = leader.log.append(note(1));
  await expect.poll(records).toBe(before + 1);
  expect(await outcome(appended)).toBe("waits");
  for (const standby of cluster.standbys) await standby.query("SELECT pg_wal_replay_resume()");
  await appended;
  expect(leader.log.size).toBe(1);
});

test("the lease counts from when a record was sent, however late it is known to be decided", async () => {
  for (const standby of cluster.standbys) await standby.query("SELECT pg_wal_replay_pause()");
  const before = await records();
  const appended = leader.log.append(note(1));
  await expect.poll(records).toBe(before + 1);
  const wasSent = performance.now();
  await expect.poll(() => performance.now() - wasSent).toBeGreaterThan(LEASE_MS);
  // By now the primary was asked whether it still is the primary, and says so: that is not a standby's word.
  expect(await outcome(appended)).toBe("waits");
  for (const standby of cluster.standbys) await standby.query("SELECT pg_wal_replay_resume()");
  await appended;
  expect([leader.journal.isLeading, leader.journal.hasLease]).toEqual([true, false]);
});

test("the lease counts from when a sign of life was sent, however late its answer comes", async () => {
  await query(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN PERFORM pg_sleep(${LEASE_MS / 1_500}); RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE UPDATE OF checkpoint ON cairnlog.lead EXECUTE FUNCTION slow()`);
  await leader.journal.beat("checkpoint");
  expect([leader.journal.isLeading, leader.journal.hasLease]).toEqual([true, false]);
});

test("a withheld payload counts as taken from the journal when its record was changed, and not before", async () => {
  await leader.log.append(note(1));
  const served = leader.log.bareJsonAt(0).toString();
  const json = Buffer.from(served.replace(/"payload":.*,(?="previous_hash")/, '"payload":null,"withheld_by":2,'));
  const bodies = () => query("SELECT sequence, body FROM cairnlog.record ORDER BY sequence");
  const before = await bodies();
  // As when somebody else has changed the record since it was read.
  await query(`CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
    CREATE TRIGGER nothing BEFORE UPDATE ON cairnlog.record FOR EACH ROW EXECUTE FUNCTION nothing()`);
  expect(await leader.journal.erase(0, json)).toBe(false);
  expect(await bodies()).toEqual(before);
  await query("DROP TRIGGER nothing ON cairnlog.record");
  for (let times = 0; times < 2; times++) expect(await leader.journal.erase(0, json)).toBe(true);
  expect(await bodies()).not.toEqual(before);
  await leader.journal.release();
  expect(await leader.journal.erase(0, json)).toBe(false);
});

test("the command that makes the files anew takes a payload also from a record that was changed since it was read", async () => {
  await leader.log.append(note(7_777_777));
  const served = leader.log.bareJsonAt(0).toString();
  const json = Buffer.from(served.replace(/"payload":.*,(?="previous_hash")/, '"payload":null,"withheld_by":2,'));
  const holding = () => query("SELECT count(*) FROM cairnlog.record WHERE position('7777777'::bytea in body) > 0");
  expect(await holding()).toEqual([["1"]]);
  const refuse = (tries: number) =>
    query(`CREATE SEQUENCE tries;
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('tries') > ${tries} THEN RETURN NEW; END IF; RETURN NULL; END $$;
      CREATE TRIGGER refuse BEFORE UPDATE ON cairnlog.record FOR EACH ROW EXECUTE FUNCTION refuse()`);
  await refuse(1_000);
  await expect(eraseFromJournal(url, [[0, json]])).rejects.toMatchObject({ code: "storage-failed" });
  await query("DROP TRIGGER refuse ON cairnlog.record; DROP FUNCTION refuse; DROP SEQUENCE tries");
  await refuse(2);
  await eraseFromJournal(url, [[0, json]]);
  expect(await holding()).toEqual([["0"]]);
});

test("a sign of life waits for no standby, and the next record does", async () => {
  for (const standby of cluster.standbys) standby.freeze();
  let isConfirmed = false;
  await leader.journal.beat("checkpoint", () => {
    isConfirmed = true;
  });
  expect(isConfirmed).toBe(true);
  const appended = leader.log.append(note(1));
  expect(await outcome(appended)).toBe("waits");
  for (const standby of cluster.standbys) standby.thaw();
  await appended;
});

test("a leader that learns by a sign of life that it has lost the lead may lead again", async () => {
  const other = await Node.open(url);
  await other.lead();
  expect(await leader.journal.beat("checkpoint")).toBe(null);
  expect(leader.journal.isLeading).toBe(false);
  await leader.lead();
  await leader.log.append(note(1));
  await expect(other.log.append(note(2))).rejects.toMatchObject({ code: "not-leader" });
});

test("a sign of life that was refused leaves no session that would not wait for standbys", async () => {
  await query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE OF checkpoint ON cairnlog.lead EXECUTE FUNCTION refuse()`);
  expect(await leader.journal.beat("checkpoint")).toBe(null);
  await query("DROP TRIGGER refuse ON cairnlog.lead");
  await leader.log.append(note(1));
  expect(leader.journal.isLeading).toBe(true);
});

test("where the primary's word is enough, a wait for the standbys that was cancelled is not its word", async () => {
  const trusting = await Node.open(url, undefined, { verification: "engine" });
  await trusting.lead();
  for (const standby of cluster.standbys) standby.freeze();
  const appended = trusting.log.append(note(1));
  const waiting = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND wait_event = 'SyncRep'";
  // Again for the second one, which tries to find out.
  for (let cancelled = 0; cancelled < 2; cancelled++) {
    await expect.poll(() => cluster.primary.query(`SELECT count(*) ${waiting}`)).toEqual([["1"]]);
    await cluster.primary.query(`SELECT pg_cancel_backend(pid) ${waiting}`);
    expect(await outcome(appended)).toBe("waits");
  }
  for (const standby of cluster.standbys) standby.thaw();
  await appended;
});

test.each(["standby", "engine"] as const)(
  "a record that the journal did not take, because another node has the lead, is refused, though nobody had told so (%s)",
  async (verification) => {
    const late = await Node.open(url, undefined, { verification });
    await late.lead();
    await late.log.append(note(1));
    await leader.lead();
    await expect(late.log.append(note(2))).rejects.toMatchObject({ code: "not-leader" });
    expect([late.journal.isLeading, late.log.size]).toEqual([false, 1]);
    await leader.log.append(note(3));
    expect(leader.log.size).toBe(2);
  },
);

/** A node that leads, with one entry, behind links that can be cut. */
async function linked() {
  const links = await Promise.all(cluster.servers.map(({ port }) => Link.open(port)));
  onTestFinished(() => {
    for (const link of links) link.close();
  });
  const behind = cluster.url({ database, ports: links.map(({ port }) => port) });
  const cut = await Node.open(behind);
  await cut.lead();
  await cut.log.append(note(1));
  return { links, cut };
}

/** A record that is in the journal, and whose answer is lost. Until the links heal, nobody tells the node. */
async function unanswered({ links, cut }: Awaited<ReturnType<typeof linked>>) {
  await cluster.primary.query("SELECT 1");
  for (const standby of cluster.standbys) standby.freeze();
  const before = await records();
  const appended = cut.log.append(note(2));
  await expect
    .poll(() => cluster.primary.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
    .toEqual([["1"]]);
  for (const link of links) link.cut();
  for (const standby of cluster.standbys) standby.thaw();
  await expect.poll(records).toBe(before + 1);
  const heal = () => {
    for (const link of links) link.reset();
    for (const link of links) link.heal();
  };
  return { appended, heal };
}

test("a record whose answer was lost with the lead is refused, and its entry is in the log", async () => {
  const { links, cut } = await linked();
  const { appended, heal } = await unanswered({ links, cut });
  await leader.lead();
  heal();
  await expect(appended).rejects.toMatchObject({ code: "not-leader" });
  expect(cut.journal.isLeading).toBe(false);
  expect(leader.log.size).toBe(2);
});

test("a record whose answer was lost is not refused, although the server refuses its next try", async () => {
  const { links, cut } = await linked();
  const { appended, heal } = await unanswered({ links, cut });
  await query("ALTER TABLE cairnlog.record RENAME TO away");
  heal();
  expect(await outcome(appended)).toBe("waits");
  await query("ALTER TABLE cairnlog.away RENAME TO record");
  await appended;
  expect(cut.log.size).toBe(2);
});

describe("the end of a log", () => {
  const END = { reason: "The year is over.", successor: null };
  const frozen = { code: "frozen" };
  /** A node that takes the lead now. */
  const next = async () => {
    const node = await Node.open(url);
    await node.lead();
    return node;
  };

  test("holds for whoever leads next, and for a leader that does not know of it yet", async () => {
    await leader.log.append(note(1));
    const heir = await next();
    await freeze(heir.log, END);
    expect((await leader.log.append(note(2)).catch((error) => error)).code).toMatch(/^(?:not-leader|frozen)$/);
    await leader.lead();
    expect(leader.log.frozen).toMatchObject({ entry_id: 2, reason: END.reason });
    await expect(leader.log.append(note(3))).rejects.toMatchObject(frozen);
    await expect((await next()).log.append(note(4))).rejects.toMatchObject(frozen);
    // A new machine that has nothing yet.
    expect((await next()).log.size).toBe(2);
  });

  test("that no standby shows is not acknowledged, and what waits behind it never gets on the log", async () => {
    for (const standby of cluster.standbys) await standby.query("SELECT pg_wal_replay_pause()");
    const before = await records();
    const ending = freeze(leader.log, END);
    await expect.poll(records).toBe(before + 1);
    const behind = leader.log.append(note(1)).catch((error) => error);
    expect(await outcome(ending)).toBe("waits");
    for (const standby of cluster.standbys) await standby.query("SELECT pg_wal_replay_resume()");
    expect((await ending).log_entry_id).toBe(1);
    expect(await behind).toMatchObject(frozen);
    const heir = await next();
    expect([heir.log.size, heir.log.frozen?.entry_id]).toEqual([1, 1]);
  });
});

test("of two that take the lead after the same look, one has it", async () => {
  const other = await Node.open(url);
  const seen = await other.journal.look();
  const taken = await Promise.all([other.journal.takeLead(seen), leader.journal.takeLead(seen)]);
  expect(taken.sort()).toEqual([false, true]);
  expect(await other.journal.takeLead(seen)).toBe(false);
});

test("a lead that was taken, and that no standby shows, is not had", async () => {
  const other = await Node.open(url);
  const seen = await other.journal.look();
  for (const standby of cluster.standbys) await standby.query("SELECT pg_wal_replay_pause()");
  expect(await other.journal.takeLead(seen)).toBe(false);
  expect(other.journal.isLeading).toBe(false);
  for (const standby of cluster.standbys) await standby.query("SELECT pg_wal_replay_resume()");
});

test("a primary that refuses all writes for a while refuses no record", async () => {
  cluster.primary.configure({ default_transaction_read_only: "on" });
  onTestFinished(() => cluster.primary.configure({ default_transaction_read_only: "off" }));
  await expect.poll(() => query("SHOW default_transaction_read_only")).toEqual([["on"]]);
  const appended = leader.log.append(note(1));
  expect(await outcome(appended)).toBe("waits");
  cluster.primary.configure({ default_transaction_read_only: "off" });
  await appended;
  expect(leader.log.size).toBe(1);
});

test("a role whose sessions do not wait for standbys by default appends all the same, and waits", async () => {
  await query("CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET synchronous_commit = off");
  const hasty = await Node.open(url.replace("postgres@", "hasty@"));
  await hasty.lead();
  await hasty.log.append(note(1));
  expect(hasty.log.size).toBe(1);
});

test("a leader reads what is there, whatever it has seen at an earlier look", async () => {
  await leader.journal.look();
  await leader.log.append(note(1));
  await leader.log.append(note(2));
  await leader.log.follow();
  expect(leader.log.size).toBe(2);
});

test("a look counts for one reading", async () => {
  const follower = await Node.open(url);
  await follower.journal.look();
  await follower.log.follow();
  await leader.log.append(note(1));
  await leader.beat();
  await follower.log.follow();
  expect(follower.log.size).toBe(1);
});

test.each<[string, () => Promise<unknown>]>([
  ["gives it back", () => leader.journal.release()],
  ["sends a record", () => supplanted(() => leader.log.append(note(1)).catch((error) => error))],
  ["gives a sign of life", () => supplanted(() => leader.beat())],
])("who loses the lead and %s does not lead, and is told so once", async (_, lose) => {
  let losses = 0;
  const { observeLoss } = leader.journal;
  leader.journal.observeLoss = () => {
    losses++;
    observeLoss();
  };
  await lose();
  expect([leader.journal.isLeading, leader.journal.hasLease, losses]).toEqual([false, false, 1]);
  await expect(leader.log.append(note(1))).rejects.toMatchObject({ code: "not-leader" });
});

/** When another node has taken the lead. */
async function supplanted<T>(work: () => Promise<T>): Promise<T> {
  const heir = await Node.open(url);
  await heir.lead();
  return work();
}

test("a lead that was given back is nobody's", async () => {
  await leader.journal.release();
  expect((await leader.journal.look()).holder).toBe(null);
});

test.each([
  ["a record is missing", "DELETE FROM cairnlog.record WHERE sequence = 4", 1],
  ["the last record is missing", "DELETE FROM cairnlog.record WHERE sequence = 5", 2],
  ["a record has another hash", "UPDATE cairnlog.record SET hash = '\\x00' WHERE sequence = 3", 1],
])("%s: nobody follows over it", async (_, sql, followed) => {
  const [early, late] = [await Node.open(url), await Node.open(url)];
  await leader.log.append(note(1));
  await leader.beat();
  await early.log.follow();
  await leader.log.append(note(2));
  await leader.log.append(note(3));
  await leader.beat();
  await query(sql);
  const refusal = { code: "corrupt-log" };
  await expect(early.log.follow()).rejects.toMatchObject(refusal);
  expect(early.log.size).toBeLessThanOrEqual(followed);
  // Whoever has nothing yet compares each record with the one before.
  if (!sql.startsWith("UPDATE")) await expect(late.log.follow()).rejects.toMatchObject(refusal);
});
