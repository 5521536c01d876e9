/** The private rows of a backup are of one moment, whatever is written while they are read. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { linesOf } from "#cairnlog/engine/log/history/backupformat.js";
import { openTestLog, temporaryFolder, testOperator } from "../log/harness.js";
import { runIn } from "../log/inline.js";

test("rows that one command has written stand together in a backup that is made meanwhile", async () => {
  const { log, path } = await openTestLog();
  // Between the first and the last table that the command writes; they take many turns.
  await runIn(log, (transaction) => {
    const row = { started_at: "2026-01-01T00:00:00.000000Z", used: 1 };
    for (let n = 0; n < 20_000; n++) transaction.put("quotas", ["webhook", `192.0.2.${n}`], row);
  });
  let last = 0;
  const write = () =>
    runIn(log, (transaction) => {
      last++;
      transaction.put("userNames", "ada", { user_id: `${last}` });
      transaction.put("counters", "webhook", { last });
    });
  await write();
  let isMade = false;
  const writing = (async () => {
    while (!isMade) await write();
  })();
  const to = join(temporaryFolder(), "backup");
  const { manifest } = await backUp({ path, to, operatorKey: testOperator.public.pem });
  isMade = true;
  await writing;
  let [first, second] = ["", ""];
  for await (const line of linesOf(to, manifest.private_rows)) {
    const text = line.toString("utf8");
    if (text.includes('"userNames"')) first = /"user_id":"(\d+)"/.exec(text)![1]!;
    if (text.includes('"counters"')) second = /"last":(\d+)/.exec(text)![1]!;
  }
  expect(last).toBeGreaterThan(Number(first));
  expect(second).toBe(first);
});
