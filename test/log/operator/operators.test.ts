/** The operator keys of a log: which key signs which size, and which rotations of a history count. */
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { type OperatorKey, operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { operatorsFrom } from "#cairnlog/engine/log/check/checks.js";
import { checkChunk } from "#cairnlog/engine/log/check/chunk.js";
import { openHistory } from "#cairnlog/engine/log/history/history.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import type { Log } from "#cairnlog/engine/log/log.js";
import { Operators } from "#cairnlog/engine/log/operator/operators.js";
import { acceptClock } from "#cairnlog/engine/log/state/clock.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import type { KeyRow, OperatorRotationRow } from "#cairnlog/engine/store/schema/rows.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import type { OperatorTerm } from "#cairnlog/engine/verify/tree/operators.js";
import type { TreeHead } from "#cairnlog/engine/verify/tree/treehead.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "../harness.js";
import { runIn } from "../inline.js";

const newKey = (): OperatorKey => operatorKey(generatePrivateKey("ed25519"));
const [A, B, C, X, Y] = [newKey(), newKey(), newKey(), newKey(), newKey()];
const MOMENT = "2025-01-01T00:00:00.000000Z";

/** The row of a rotation after `size` entries. Nothing here checks its signatures. */
const row = (old: OperatorKey, next: OperatorKey, size: number): OperatorRotationRow => ({
  entry_id: size + 1,
  timestamp: MOMENT,
  old_fingerprint: old.fingerprint,
  old_public_key: old.public.pem,
  fingerprint: next.fingerprint,
  public_key: next.public.pem,
  tree_size: size,
  root_hash: "ab".repeat(32),
  old_key_signature: `${size} by the old key`,
  new_key_signature: `${size} by the new key`,
});
/** A hands over to B after 3 entries, and B to C after 7. The rotation between them is another log's. */
const ROWS = [row(A, B, 3), row(X, Y, 5), row(B, C, 7)];
const of = (key: OperatorKey) => Operators.of(key.public);
const linked = (known: Operators, rows = ROWS, first = A) => Operators.linked(rows, first.fingerprint, known);
const prints = (operators: Operators) => operators.chain.map(({ key_id, from_size }) => [key_id, from_size]);
const WHOLE = [
  [A.fingerprint, 1],
  [B.fingerprint, 4],
  [C.fingerprint, 8],
];

describe("the keys of three terms", () => {
  const operators = linked(of(A));

  test("sign the heads from their first size to the one before the next key's", () => {
    const signers = [0, 1, 3, 4, 7, 8, 1000].map((size) => operators.keyAt(size).fingerprint);
    expect(signers).toEqual([A, A, A, B, B, C, C].map(({ fingerprint }) => fingerprint));
    expect([operators.first.fingerprint, operators.current.fingerprint]).toEqual([A.fingerprint, C.fingerprint]);
    expect(operators.chain.map(({ from_size, until_size }) => [from_size, until_size])).toEqual([
      [1, 3],
      [4, 7],
      [8, null],
    ]);
  });

  test("are found by their names, with the rotations at both ends of their terms", () => {
    expect(operators.named(A.fingerprint)).toMatchObject({ from: 1, rotation: null, until: ROWS[0] });
    expect(operators.named(B.fingerprint)).toMatchObject({ from: 4, rotation: ROWS[0], until: ROWS[2] });
    expect(operators.named(C.fingerprint)).toMatchObject({ from: 8, rotation: ROWS[2], until: null });
    expect(operators.named(X.fingerprint)).toBeUndefined();
    expect(operators.rotations).toEqual([ROWS[0], ROWS[2]]);
  });

  test("come back from the chain that is shown, all but the times, which are in the entries", () => {
    const again = Operators.ofChain(operators.chain);
    expect(again.chain).toEqual(operators.chain);
    expect(again.rotations).toEqual([ROWS[0], ROWS[2]].map((rotation) => ({ ...rotation, timestamp: null })));
  });

  test("are refused by name where only the newest may sign", () => {
    expect(() => operators.checkCurrent(C.fingerprint)).not.toThrow();
    for (const [key, why] of [
      [B, `the operator key ${B.fingerprint} was retired by entry 8.`],
      [X, `${X.fingerprint} is not its operator key.`],
    ] as const)
      expect(() => operators.checkCurrent(key.fingerprint)).toThrow(
        expect.objectContaining({ code: "wrong-operator", message: expect.stringContaining(why) }),
      );
  });
});

describe("the keys that a log tells are its own", () => {
  test("for whoever knows one of them, or the beginning of their chain", () => {
    for (const known of [of(A), of(B), of(C), linked(of(A), ROWS.slice(0, 1)), linked(of(A))])
      expect(prints(linked(known))).toEqual(WHOLE);
    expect(prints(linked(of(A), []))).toEqual([[A.fingerprint, 1]]);
  });

  test("and where the log ends before the chain that is known does, the chain counts", () => {
    for (const rows of [[], ROWS.slice(0, 2)]) expect(prints(linked(linked(of(A)), rows))).toEqual(WHOLE);
  });

  test("but not for those who know another chain, or a key of another log", () => {
    const elsewhere = linked(of(A), [row(A, B, 4)]);
    const others = linked(of(A), [row(A, X, 3)]);
    const later = linked(of(B), [row(B, C, 2)], B);
    for (const known of [elsewhere, others, later, of(X), of(Y)])
      expect(() => linked(known)).toThrow(
        expect.objectContaining({
          code: "wrong-operator",
          message: `This log is signed by operator key ${C.fingerprint}, not by ${known.current.fingerprint}. Give the key that belongs to it, or another data directory.`,
        }),
      );
    // The log's own row names a first key that nobody here has.
    expect(() => linked(of(A), [], X)).toThrow(`signed by operator key ${X.fingerprint}, not by ${A.fingerprint}`);
  });
});

test("a log has at most a hundred operator keys, each of them once", () => {
  const term: OperatorTerm = { ...of(A).chain[0]! };
  const chainOf = (count: number) =>
    Operators.ofChain(Array.from({ length: count }, (_, i) => ({ ...term, from_size: i + 1 })));
  expect(() => chainOf(99).checkNext(B.fingerprint)).not.toThrow();
  expect(() => chainOf(100).checkNext(B.fingerprint)).toThrow(
    expect.objectContaining({ code: "invalid-input", message: "A log has at most 100 operator keys." }),
  );
  expect(() => linked(of(A)).checkNext(B.fingerprint)).toThrow(
    expect.objectContaining({
      code: "invalid-input",
      message: `The key ${B.fingerprint} is or was an operator key of this log.`,
    }),
  );
});

describe("the keys of a log that is being checked", () => {
  const head = (key: OperatorKey, tree_size: number) => ({ key_id: key.fingerprint, tree_size }) as TreeHead;
  const found = (key: OperatorKey, stored?: unknown, oldest?: TreeHead, rows = ROWS) =>
    prints(operatorsFrom(rows, stored as string | undefined, oldest, key.public));

  test("begin with the stored one, if the oldest head bears it out", () => {
    for (const key of [A, B, C]) {
      expect(found(key, A.fingerprint, head(A, 1))).toEqual(WHOLE);
      expect(found(key, A.fingerprint, head(B, 4))).toEqual(WHOLE);
      expect(found(key, A.fingerprint)).toEqual(WHOLE);
    }
    // The chain from B is a part of the whole one, in which another key signs the oldest head.
    const fromB = [
      [B.fingerprint, 1],
      [C.fingerprint, 8],
    ];
    expect(found(C, B.fingerprint, head(B, 1))).toEqual(fromB);
    expect(found(C, B.fingerprint, head(A, 1))).toEqual(WHOLE);
  });

  test("are followed back from the key at hand, where the stored one is lost or another's", () => {
    for (const stored of [undefined, 7, X.fingerprint, Y.fingerprint])
      for (const key of [A, B, C]) expect(found(key, stored, head(A, 1)), `${stored}`).toEqual(WHOLE);
  });

  test("are the key at hand alone, where nothing else fits", () => {
    expect(found(X, A.fingerprint, head(A, 1), [])).toEqual([[X.fingerprint, 1]]);
    expect(found(A, A.fingerprint, head(X, 1))).toEqual([[A.fingerprint, 1]]);
    // A row with a key that cannot be read.
    const damaged = [{ ...row(A, B, 3), public_key: "no key" }];
    expect(found(A, A.fingerprint, head(A, 1), damaged)).toEqual([[A.fingerprint, 1]]);
  });
});

describe("a rotation of a log on disk", () => {
  const rotate = (path: string, from: OperatorKey, to: OperatorKey) => {
    // These logs have entries of long ago, or of the future.
    acceptClock(path);
    return rotateOperatorKey({ path, from, to, projection: noProjection });
  };
  const events = (count: number) => Array.from({ length: count }, (_, i) => ({ event_type: "x", payload: { i } }));

  /** A log of this many entries and a rotation from the tests' operator. Logs of one size have the same entries. */
  async function rotated(size: number, to: OperatorKey): Promise<string> {
    const { log, path } = await openTestLog({ clock: () => 1_700_000_000_000_000 });
    for (const event of events(size)) await log.append(event);
    await log.close();
    await rotate(path, testOperator, to);
    return path;
  }

  const itemsOf = (log: Log, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      entry: log.entryJsonAt(i)!,
      otsProof: null,
      head: log.treeHead(i + 1),
    }));

  test("is refused where another one is known to follow, and where the same one is known at another size", async () => {
    const { log } = await openTestLog({ path: await rotated(2, B), signer: B });
    const items = itemsOf(log, 3);
    for (const [signer, size] of [
      [C, 2],
      [B, 3],
    ] as const) {
      const { log: known } = await openTestLog({ path: await rotated(size, signer), signer });
      const writer = await openHistory({
        path: temporaryFolder(),
        operatorKey: testOperator.public.pem,
        operators: known.operators.chain,
        mapSize: MAP_SIZE,
      });
      await writer.add(items.slice(0, 1));
      await expect(writer.add(items.slice(1))).rejects.toMatchObject({
        code: "invalid-input",
        message: expect.stringContaining(`Another rotation of the operator key ${testOperator.fingerprint} is known.`),
        details: [{ path: "/1" }],
      });
      expect(writer.size).toBe(1);
      await writer.close();
    }
  });

  test("needs its head, and no entry beside it does", async () => {
    const path = await rotated(2, B);
    const { log } = await openTestLog({ path, signer: B });
    for (const event of events(2)) await log.append(event);
    const headed = itemsOf(log, 5);
    const bare = headed.map((item) => ({ ...item, head: null }));
    const open = (operators?: readonly OperatorTerm[]) =>
      openHistory({
        ...{ path: temporaryFolder(), operatorKey: testOperator.public.pem, mapSize: MAP_SIZE },
        ...(operators && { operators }),
      });
    const lost = (at: number) => ({
      code: "wrong-operator",
      message: `Item ${at}: This entry hands the log over from operator key ${testOperator.fingerprint} to ${B.fingerprint}, and comes without a head.`,
      details: [{ path: `/${at}` }],
    });
    const writer = await open();
    await expect(writer.add(bare)).rejects.toMatchObject(lost(2));
    await expect(writer.add(bare.slice(0, 3))).rejects.toMatchObject(lost(2));
    await writer.add(bare.slice(0, 1));
    await expect(writer.add([headed[1]!, ...bare.slice(2)])).rejects.toMatchObject(lost(1));
    await writer.add([bare[1]!, headed[2]!]);
    await writer.add(bare.slice(3));
    expect([writer.size, writer.operators.current.fingerprint]).toEqual([5, B.fingerprint]);
    await writer.close();
    // Whoever knows the chain knows of the rotation before its entry comes.
    const ahead = await open(log.operators.chain);
    await ahead.add(bare.slice(0, 2));
    await expect(ahead.add(bare.slice(2))).rejects.toMatchObject(lost(0));
    await ahead.add(headed.slice(2));
    await ahead.close();
  });

  test("is not the last entry of an import by the key that it retires", async () => {
    const { log } = await openTestLog({ path: await rotated(2, B), signer: B });
    const path = `${temporaryFolder()}/log`;
    await expect(
      importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, [...log.entries()]),
    ).rejects.toMatchObject({
      code: "wrong-operator",
      message: expect.stringContaining(`the operator key ${testOperator.fingerprint} was retired by entry 3.`),
    });
    expect(existsSync(path)).toBe(false);
  });

  test("that does not hold is found by a check of its stretch, with the reason", async () => {
    const path = await rotated(2, B);
    const { log: other } = await openTestLog({ path: await rotated(2, C), signer: C });
    const store = openStore({ path, mapSize: MAP_SIZE });
    const { errors } = checkChunk(store, { from: 0, to: 3, size: 3, operators: other.operators.chain });
    await store.close();
    expect(errors).toContainEqual({
      ...{ id: 3, tree_size: null, code: "rotation-invalid" },
      message: `Another rotation of the operator key ${testOperator.fingerprint} is known.`,
    });
    expect(errors).toContainEqual(expect.objectContaining({ tree_size: 3, code: "foreign-head" }));
  });

  test("is not earlier than the newest entry and head, and is of its own moment otherwise", async () => {
    for (const [clock, isLater] of [
      [4_000_000_000_000_000, true],
      [1_700_000_000_000_000, false],
    ] as const) {
      const { log, path } = await openTestLog({ clock: () => clock });
      const { sth } = await log.append({ event_type: "x", payload: {} });
      await log.close();
      const before = `${new Date().toISOString().slice(0, -1)}000Z`;
      const { sth: head, tree_size, log_entry_id } = await rotate(path, testOperator, B);
      expect([tree_size, log_entry_id, head.tree_size, head.key_id]).toEqual([1, 2, 2, B.fingerprint]);
      const { log: again } = await openTestLog({ path, signer: B });
      const { timestamp } = again.entry(2)!;
      if (isLater) expect([timestamp, head.timestamp]).toEqual([sth.timestamp, sth.timestamp]);
      else expect(timestamp >= before && head.timestamp >= timestamp).toBe(true);
      expect(await again.verify()).toMatchObject({ valid: true, errors: [] });
      await again.close();
    }
  });

  test.each<[string, Partial<KeyRow>, string | null]>([
    ["that is active and does not end", { status: "active", expires_at: null }, null],
    ["that will end", { status: "active", expires_at: MOMENT }, `active, until ${MOMENT}`],
    ["that was revoked", { status: "revoked", expires_at: null }, "revoked"],
  ])("to a key that is registered, %s", async (_, members, refused) => {
    const { log, path } = await openTestLog();
    await log.append({ event_type: "x", payload: {} });
    await runIn(log, (transaction) => transaction.put("keys", B.fingerprint, members as KeyRow));
    await log.close();
    if (refused === null) {
      expect(await rotate(path, testOperator, B)).toMatchObject({ tree_size: 1 });
      return;
    }
    await expect(rotate(path, testOperator, B)).rejects.toMatchObject({
      code: "wrong-key-status",
      message: `The key ${B.fingerprint} is registered in this log and is ${refused}. Give a key that does not end.`,
    });
    expect((await openTestLog({ path })).log.size).toBe(1);
  });
});
