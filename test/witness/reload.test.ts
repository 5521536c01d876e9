/** SIGHUP: a witness reads the file of logs again, and a file that cannot be used ends nothing. */
import { rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { temporaryFolder } from "../server/harness.js";
import { logsFile, spawnWitness } from "./harness.js";
import { newTree, type WitnessedTree } from "./logs.js";

test("after each file that cannot be used the logs are as before, and after a good one they are those in it, in figures, too", async () => {
  const [first, second] = [newTree("log.example/first"), newTree("log.example/second")];
  const file = logsFile([first]);
  const witness = await spawnWitness(temporaryFolder(), file, [], "pipe");
  const lines = createInterface({ input: witness.child.stderr! })[Symbol.asyncIterator]();
  const bad: readonly (() => void)[] = [
    () => rmSync(file),
    () => writeFileSync(file, "log no-key\n"),
    () => writeFileSync(file, Buffer.of(0xff, 0xfe, 0)),
  ];
  let size = 0;
  for (let round = 0; round < 2; round++) {
    for (const spoil of bad) {
      spoil();
      witness.child.kill("SIGHUP");
      expect((await lines.next()).value).toMatch(/^cairnlog: the logs stay as they were\. [A-Z].*\.$/);
      await witness.expectCosigned(await witness.add(first.body(size, size + 1)), first, size + 1);
      size++;
    }
    const known = round === 0 ? 404 : 200;
    expect((await witness.add(second.body(round, round + 1))).status).toBe(known);
    writeFileSync(file, [first, second].map(({ signer }) => `log ${signer.vkey}\n`).join(""));
    witness.child.kill("SIGHUP");
    await expect.poll(async () => (await witness.add(second.body(0, 1))).status).not.toBe(404);
  }
  // A log that is taken out would have the same size for ever, and be older every day.
  const gauges = async () =>
    [...(await witness.send("/metrics")).text.matchAll(/^cairnlog_witness_(\w+)\{origin="([^"]+)"\}/gm)].flatMap(
      ([, name, origin]) => (name!.endsWith("_total") ? [] : [[name, origin]]),
    );
  const of = (name: string, trees: readonly WitnessedTree[]) => trees.map(({ origin }) => [name, origin]);
  const both = [first, second];
  expect(await gauges()).toEqual([...of("tree_size", both), ...of("cosigned_seconds", both)]);
  writeFileSync(file, `log ${second.signer.vkey}\n`);
  witness.child.kill("SIGHUP");
  await expect.poll(gauges).toEqual([...of("tree_size", [second]), ...of("cosigned_seconds", [second])]);
  expect(await witness.end("SIGTERM")).toBe(0);
});
