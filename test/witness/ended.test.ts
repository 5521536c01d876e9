/** A log that has ended: its witness cosigns nothing behind the end, whoever asks, and keeps what was signed there. */
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { checkpointOf } from "../verify/note/notes.js";
import { logsFile, startTestWitness } from "./harness.js";
import { bodyOf, newTree } from "./logs.js";

test("behind the end nothing is cosigned; the last checkpoint still is, and what the log signed behind it is evidence", async () => {
  const [ended, other] = [newTree("log.example/ended"), newTree("log.example/other")];
  const file = logsFile([ended, other]);
  const lines: string[] = [];
  const witness = await startTestWitness([ended, other], { logsFile: file }, lines);
  await witness.expectCosigned(await witness.add(ended.body(0, 6)), ended, 6);
  writeFileSync(file, `log ${ended.signer.vkey}\nfrozen 9\nlog ${other.signer.vkey}\n`);
  witness.running.reload();

  for (const body of [ended.body(6, 10), ended.body(0, 10), bodyOf(6, [], ended.note(64))]) {
    const { status, text } = await witness.add(body);
    expect([status, JSON.parse(text).code]).toEqual([410, "frozen"]);
  }
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { origin: ended.origin, end: 9, refused: ended.note(10) },
    { refused: ended.note(10) },
    { refused: ended.note(64) },
  ]);
  const figure = `cairnlog_witness_forks_total{origin="${ended.origin}"} 3`;
  expect((await witness.send("/metrics")).text).toContain(figure);
  // A stranger's is no evidence, and moves no figure.
  const stranger = newTree(ended.origin);
  const unsigned = bodyOf(6, [], stranger.signer.note(checkpointOf(ended.origin, 10, ended.root(10))));
  expect((await witness.add(unsigned)).status).toBe(403);
  expect(lines).toHaveLength(3);

  await witness.expectCosigned(await witness.add(ended.body(6, 9)), ended, 9);
  await witness.expectCosigned(await witness.add(ended.body(9, 9)), ended, 9);
  await witness.expectCosigned(await witness.add(other.body(0, 10)), other, 10);
});
