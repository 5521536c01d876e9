/** What a witness must never do: cosign two histories, forget what it cosigned, or be two witnesses. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { parseCheckpointText, parseNote, verifyNote } from "#cairnlog/engine/verify/index.js";
import { parseWitnessedLogs } from "#cairnlog/server/witness/logs.js";
import { WitnessRows } from "#cairnlog/server/witness/rows.js";
import { openWitnessSigner } from "#cairnlog/server/witness/signer.js";
import { parseAddCheckpoint, Witness } from "#cairnlog/server/witness/witness.js";
import { temporaryFolder } from "../server/harness.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { logsFile, NAME, spawnWitness, startTestWitness } from "./harness.js";
import { newTree, type WitnessedTree } from "./logs.js";

const ORIGIN = "log.example/atomic";

describe("requests at once", () => {
  test("of requests from one size to others, one is cosigned; the others learn its size", async () => {
    const tree = newTree(ORIGIN);
    const witness = await startTestWitness([tree]);
    let known = 0;
    for (let round = 0; round < 6; round++) {
      const sizes = Array.from({ length: 8 }, (_, i) => known + 1 + i);
      const replies = await Promise.all(sizes.map((size) => witness.add(tree.body(known, size))));
      const winners = sizes.filter((_, i) => replies[i]!.status === 200);
      expect(winners).toHaveLength(1);
      for (const { status, text } of replies)
        if (status !== 200) expect({ status, text }).toEqual({ status: 409, text: `${winners[0]}\n` });
      known = winners[0]!;
      expect(await witness.size(tree)).toBe(known);
    }
  });

  test("of two histories, one is cosigned", async () => {
    for (let round = 0; round < 8; round++) {
      const tree = newTree(ORIGIN);
      const fork = newTree(ORIGIN, tree.signer, 5);
      const witness = await startTestWitness([tree]);
      await witness.add(tree.body(0, 4));
      const replies = await Promise.all([tree, fork, tree, fork].map((one) => witness.add(one.body(4, 9))));
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
      const [won, lost] = replies.findIndex(({ status }) => status === 200) % 2 ? [fork, tree] : [tree, fork];
      expect((await witness.add(lost.body(9, 9))).status).toBe(422);
      await witness.expectCosigned(await witness.add(won.body(9, 9)), won, 9);
      await witness.running.close();
    }
  });

  test("the newest checkpoint sent again does not stand in the way of the next", async () => {
    const tree = newTree(ORIGIN);
    const witness = await startTestWitness([tree]);
    await witness.add(tree.body(0, 4));
    for (let size = 4; size < 12; size++) {
      const again = [1, 2, 3].map(() => witness.add(tree.body(size, size)));
      const next = witness.add(tree.body(size, size + 1));
      await witness.expectCosigned(await next, tree, size + 1);
      for (const { status, text } of await Promise.all(again))
        expect(status === 200 || text === `${size + 1}\n`).toBe(true);
    }
  });
});

test("of two histories, one is cosigned, though the signature over the other takes longer", async () => {
  const tree = newTree(ORIGIN);
  const fork = newTree(ORIGIN, tree.signer, 5);
  const rows = await WitnessRows.open(temporaryFolder());
  const { key, sign } = await openWitnessSigner(join(temporaryFolder(), "witness.pem"), "ed25519", NAME);
  let hold: (() => Promise<void>) | null = null;
  const slow = async (message: Uint8Array) => {
    await hold?.();
    return sign(message);
  };
  const logs = parseWitnessedLogs(`log ${tree.signer.vkey}\n`);
  const witness = new Witness({ signer: { key, sign: slow }, rows, logs });
  const ask = (one: WitnessedTree, from: number, size: number) =>
    witness.addCheckpoint(parseAddCheckpoint(Buffer.from(one.body(from, size))));
  await ask(tree, 0, 4);
  let release = () => {};
  const isSigning = new Promise<void>((signing) => {
    hold = () => {
      hold = null;
      signing();
      return new Promise((resolve) => {
        release = resolve;
      });
    };
  });
  const late = ask(fork, 4, 9);
  await isSigning;
  expect(await ask(tree, 4, 9)).toMatchObject({ kind: "cosigned" });
  release();
  expect(await late).toEqual({ kind: "conflict", size: 9 });
  await expect(ask(fork, 9, 9)).rejects.toMatchObject({ code: "invalid-proof" });
  expect(await ask(tree, 9, 9)).toMatchObject({ kind: "cosigned" });
  await rows.close();
});

test("a key that signs something else moves nothing, and nobody gets what it signed", async () => {
  const tree = newTree(ORIGIN);
  const rows = await WitnessRows.open(temporaryFolder());
  const { key } = await openWitnessSigner(join(temporaryFolder(), "witness.pem"), "ed25519", NAME);
  const logs = parseWitnessedLogs(`log ${tree.signer.vkey}\n`);
  const witness = new Witness({ signer: { key, sign: async () => new Uint8Array(64) }, rows, logs });
  const asked = parseAddCheckpoint(Buffer.from(tree.body(0, 4)));
  await expect(witness.addCheckpoint(asked)).rejects.toMatchObject({ code: "signer-unavailable" });
  expect(witness.cosigned(ORIGIN)).toBeUndefined();
  await rows.close();
});

test("a cosignature whose row cannot be written is given to nobody, however often it is asked for", async () => {
  const tree = newTree(ORIGIN);
  const rows = await WitnessRows.open(temporaryFolder());
  const full = new CairnlogError("storage-full", "There is no room.");
  const failing = { get: (origin) => rows.get(origin), replace: () => Promise.reject(full) } as Partial<WitnessRows>;
  const signer = await openWitnessSigner(join(temporaryFolder(), "witness.pem"), "ed25519", NAME);
  const logs = parseWitnessedLogs(`log ${tree.signer.vkey}\n`);
  const witness = new Witness({ signer, rows: failing as WitnessRows, logs, now: () => 1 });
  for (let n = 0; n < 2; n++) {
    const asked = parseAddCheckpoint(Buffer.from(tree.body(0, 4)));
    await expect(witness.addCheckpoint(asked)).rejects.toBe(full);
  }
  await rows.close();
});

test("the newest checkpoint sent again gets the cosignature of this second, and is written once in a second", async () => {
  const trees = [newTree(ORIGIN), newTree("log.example/other")] as const;
  const rows = await WitnessRows.open(temporaryFolder());
  const written = vi.spyOn(rows, "replace");
  const signer = await openWitnessSigner(join(temporaryFolder(), "witness.pem"), "ed25519", NAME);
  const logs = parseWitnessedLogs(trees.map((tree) => `log ${tree.signer.vkey}\n`).join(""));
  let now = 0;
  const witness = new Witness({ signer, rows, logs, now: () => now });
  const add = async (tree: WitnessedTree, from: number, to: number) => {
    const verdict = await witness.addCheckpoint(parseAddCheckpoint(Buffer.from(tree.body(from, to))));
    if (verdict.kind === "conflict") return verdict.size;
    // What was given out is what the row has.
    expect(rows.get(tree.origin)!.note).toBe(tree.note(to) + verdict.line);
    return (await verifyNote(tree.note(to) + verdict.line, [signer.key]))!.signatures[0]!.time;
  };
  let known = 0;
  for (const size of [4, 4, 7]) {
    now++;
    for (const tree of trees) {
      expect(await add(tree, known, size)).toBe(now);
      const before = written.mock.calls.length;
      for (let n = 0; n < 2; n++) expect(await add(tree, size, size)).toBe(now);
      expect(written).toHaveBeenCalledTimes(before);
      if (known < size && known) expect(await add(tree, known, known)).toBe(size);
    }
    known = size;
  }
  await rows.close();
});

test("a row is replaced only if it has size and root of the one that was checked", async () => {
  const tree = newTree(ORIGIN);
  const rowOf = (of: WitnessedTree, size: number) => {
    const note = of.note(size);
    return { ...parseCheckpointText(parseNote(note)!.text)!, note };
  };
  const rows = await WitnessRows.open(temporaryFolder());
  expect(await rows.replace(undefined, rowOf(tree, 4))).toBe(true);
  for (const other of [undefined, rowOf(tree, 3), rowOf(newTree(ORIGIN, tree.signer, 0), 4)])
    expect(await rows.replace(other, rowOf(tree, 5))).toBe(false);
  expect(rows.get(ORIGIN)).toMatchObject({ treeSize: 4 });
  expect(await rows.replace(rowOf(tree, 4), rowOf(tree, 5))).toBe(true);
  await rows.close();
});

test("the proof of a fork has the signatures of the log, and those of nobody else", async () => {
  const tree = newTree(ORIGIN);
  const fork = newTree(ORIGIN, tree.signer, 0);
  const rows = await WitnessRows.open(temporaryFolder());
  const signer = await openWitnessSigner(join(temporaryFolder(), "witness.pem"), "ed25519", NAME);
  const logs = parseWitnessedLogs(`log ${tree.signer.vkey}\n`);
  const proofs: string[] = [];
  const witness = new Witness({ signer, rows, logs, forked: (_, { refused }) => proofs.push(refused) });
  await witness.addCheckpoint(parseAddCheckpoint(Buffer.from(tree.body(0, 4))));
  const stranger = newNoteSigner("stranger.example").line(parseNote(fork.note(4))!.text);
  const asked = parseAddCheckpoint(Buffer.from(fork.body(4, 4) + stranger));
  await expect(witness.addCheckpoint(asked)).rejects.toMatchObject({ code: "invalid-proof" });
  expect(proofs).toEqual([fork.note(4)]);
  await rows.close();
});

describe("the directory", () => {
  test("a witness goes on where it was, with the same key, which only its owner may read", async () => {
    const tree = newTree(ORIGIN);
    const first = await startTestWitness([tree]);
    await first.add(tree.body(0, 7));
    await first.running.close();
    const second = await startTestWitness([tree], { dataDir: first.dataDir });
    expect(second.key).toEqual(first.key);
    expect(await second.add(tree.body(0, 9))).toMatchObject({ status: 409, text: "7\n" });
    await second.expectCosigned(await second.add(tree.body(7, 9)), tree, 9);
    expect(statSync(join(first.dataDir, "witness.pem")).mode & 0o777).toBe(0o600);
    expect(statSync(join(first.dataDir, "witness", "data.mdb")).mode & 0o777).toBe(0o600);
  });

  test("a log that leaves the file and comes back goes on where it was", async () => {
    const [tree, other] = [newTree(ORIGIN), newTree("log.example/other")];
    const file = logsFile([tree, other]);
    const witness = await startTestWitness([], { logsFile: file });
    await witness.add(tree.body(0, 7));
    const all = readFileSync(file, "utf8");
    writeFileSync(file, `log ${other.signer.vkey}\n`);
    witness.running.reload();
    expect((await witness.add(tree.body(7, 9))).status).toBe(404);
    expect((await witness.add(other.body(0, 1))).status).toBe(200);
    writeFileSync(file, "log what?\n");
    expect(() => witness.running.reload()).toThrow("Line 1");
    expect((await witness.add(other.body(1, 2))).status).toBe(200);
    writeFileSync(file, all);
    witness.running.reload();
    expect(await witness.add(tree.body(0, 9))).toMatchObject({ status: 409, text: "7\n" });
  });

  test("a log that changes its key goes on where it was", async () => {
    const tree = newTree(ORIGIN);
    const next = newTree(ORIGIN, newNoteSigner(ORIGIN));
    const witness = await startTestWitness([tree, next]);
    await witness.add(tree.body(0, 7));
    await witness.expectCosigned(await witness.add(next.body(7, 9)), next, 9);
  });

  test("a second process does not start", async () => {
    const tree = newTree(ORIGIN);
    const { dataDir } = await startTestWitness([tree]);
    await expect(spawnWitness(dataDir, logsFile([tree]))).rejects.toThrow("ended before it listened: 1");
  });

  test("damaged rows are not taken for none", async () => {
    const tree = newTree(ORIGIN);
    const { dataDir, running, ...witness } = await startTestWitness([tree]);
    expect(witness.key.name).toBe(NAME);
    await running.close();
    writeFileSync(join(dataDir, "witness", "data.mdb"), Buffer.alloc(8192, 7));
    await expect(startTestWitness([tree], { dataDir })).rejects.toMatchObject({ code: "corrupt-log" });
  });

  test("without a readable file of logs nothing is made", async () => {
    const dataDir = join(temporaryFolder(), "none");
    for (const logs of ["/nowhere/logs.txt", temporaryFolder()])
      await expect(startTestWitness([], { dataDir, logsFile: logs })).rejects.toMatchObject({ code: "storage-failed" });
    expect(existsSync(dataDir)).toBe(false);
  });
});

test("the command: serves under a prefix, and a process that is killed loses nothing that it gave out", async () => {
  const tree = newTree(ORIGIN);
  const [dataDir, logs] = [temporaryFolder(), logsFile([tree])];
  const first = await spawnWitness(dataDir, logs, ["--prefix", "/w/1"]);
  expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/w\/1$/);
  await first.expectCosigned(await first.add(tree.body(0, 5)), tree, 5);
  expect(await first.end("SIGKILL")).toBe("SIGKILL");
  const second = await spawnWitness(dataDir, logs);
  expect(await second.add(tree.body(0, 6))).toMatchObject({ status: 409, text: "5\n" });
  await second.expectCosigned(await second.add(tree.body(5, 6)), tree, 6);
  expect(await second.end("SIGTERM")).toBe(0);
});
