/** SIGHUP: a witness reads the file of logs again, and a file that cannot be used ends nothing. */
import { execFileSync } from "node:child_process";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
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

test("SIGHUP while it starts ends nothing, and what it had read by then is read again", async () => {
  const trees = [newTree("log.example/first"), newTree("log.example/second")];
  const text = (of: readonly WitnessedTree[]) => of.map(({ signer }) => `log ${signer.vkey}\n`).join("");
  const folder = temporaryFolder();
  const [file, other] = [join(folder, "logs.txt"), join(folder, "other.txt")];
  execFileSync("mkfifo", [file]);
  writeFileSync(other, text(trees));
  let pid = 0;
  const spawned = spawnWitness(temporaryFolder(), file, [], "inherit", {}, (child) => {
    pid = child.pid!;
  });
  // It waits for what comes through the pipe.
  const pipe = await open(file, "w");
  process.kill(pid, "SIGHUP");
  renameSync(other, file);
  await pipe.writeFile(text(trees.slice(0, 1)));
  await pipe.close();
  const witness = await spawned;
  await expect.poll(async () => (await witness.add(trees[1]!.body(0, 1))).status).toBe(200);
  expect(await witness.end("SIGTERM")).toBe(0);
});
