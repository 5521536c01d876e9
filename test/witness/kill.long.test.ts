/** A witness that is killed again and again while it cosigns: nothing that it gave out is ever contradicted. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { temporaryFolder } from "../server/harness.js";
import { logsFile, spawnWitness } from "./harness.js";
import { newTree } from "./logs.js";

const ROUNDS = 12;

test("after each kill the witness is at the last size that it gave out, or at the one that was under way", async () => {
  const tree = newTree("log.example/killed");
  const fork = newTree(tree.origin, tree.signer, 0);
  const [dataDir, logs] = [temporaryFolder(), logsFile([tree])];
  let given = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const witness = await spawnWitness(dataDir, logs);
    const size = await witness.size(tree);
    expect([Math.max(given, 1), given + 1]).toContain(size);
    given = size;
    expect((await witness.add(fork.body(size, size))).status).toBe(422);
    // At another moment of a request each time.
    const kill = sleep(Math.random() * 40).then(() => witness.end("SIGKILL"));
    try {
      while (given < 60) {
        await witness.expectCosigned(await witness.add(tree.body(given, given + 1)), tree, given + 1);
        given++;
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
    await kill;
    if (given === 60) break;
  }
});
