/** Which keys are known to have no password, in the thread of the writer and in others: none that has one. */
import { afterEach, expect, test } from "vitest";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import type { LogFollower } from "#cairnlog/engine/log/follow/follower.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { PasswordRows } from "#cairnlog/engine/registry/access/passwords.js";
import { MAP_SIZE, openFaultyLog, testOperator } from "../../log/harness.js";
import { runIn } from "../../log/inline.js";

let front: LogFollower | undefined;
afterEach(() => front?.close());

test.each([
  ["was set by another thread", undefined],
  ["is on disk, though the write seemed to have failed", "persisted anyway"],
] as const)("a key whose password %s", async (_, fault) => {
  const { log, path, faults } = await openFaultyLog();
  const sent: FeedMessage[] = [];
  log.feed((message) => sent.push(message));
  const writer = { enqueue: log.enqueue.bind(log), signHead: () => log.signHead(), verify: () => log.verify() };
  front = openLogFollower({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE, writer });
  const views = [new PasswordRows(log, log), new PasswordRows(front, front)];
  for (const rows of views) expect(rows.isSet("key")).toBe(false);
  if (fault) faults.plan = [fault];
  const setting = runIn(log, (transaction) => transaction.put("passwords", "key", { hash: "hash", version: "1" }));
  if (fault) await expect(setting).rejects.toMatchObject({ code: "storage-failed" });
  else await setting;
  for (const message of sent.splice(0)) front.follow(message);
  for (const rows of views) expect(rows.version("key")).toBe("1");
});
