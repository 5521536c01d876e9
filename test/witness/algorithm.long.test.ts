/** `cairnlog witness --algorithm` as a process: what it prints, a restart after a kill, and what it refuses. */
import { expect, test } from "vitest";
import { cairnlog } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { logsFile, NAME, spawnWitness } from "./harness.js";
import { newTree } from "./logs.js";

const ML_DSA = ["--algorithm", "ml-dsa-44"];

test("a witness of ML-DSA-44 is killed, started again with its key, and refused with another algorithm", async () => {
  const tree = newTree("log.example/process");
  const [dataDir, logs] = [temporaryFolder(), logsFile([tree])];
  const first = await spawnWitness(dataDir, logs, ML_DSA);
  expect(first.key).toMatchObject({ name: NAME, type: "subtree/v1" });
  await first.expectCosigned(await first.add(tree.body(0, 5)), tree, 5);
  expect(await first.end("SIGKILL")).toBe("SIGKILL");

  const second = await spawnWitness(dataDir, logs, ML_DSA);
  expect(second.key).toEqual(first.key);
  expect((await second.add(tree.body(0, 9))).text).toBe("5\n");
  await second.expectCosigned(await second.add(tree.body(5, 9)), tree, 9);
  expect(await second.end("SIGTERM")).toBe(0);

  const args = ["witness", "--data", dataDir, "--logs", logs, "--name", NAME, "--port", "0"];
  for (const other of [[], ["--algorithm", "ed25519"]])
    expect(await cairnlog([...args, ...other])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is of the algorithm ml-dsa-44, and the witness was to sign with ed25519"),
    });
  expect(await cairnlog([...args, "--algorithm", "rsa"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--algorithm is ed25519 or ml-dsa-44"),
  });
});
