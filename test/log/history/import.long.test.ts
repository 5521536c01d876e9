/** Imports: the accepted data, refusals with their lines, and the log afterwards. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ImportSource, importEntries } from "#cairnlog/engine/log/history/import.js";
import { instantOf, parseTimestamp } from "#cairnlog/engine/log/state/clock.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { verifyConsistency, verifyInclusion } from "#cairnlog/engine/verify/tree/merkle.js";
import { openTestLog, temporaryFolder, testOperator } from "../harness.js";
import { runIn } from "../inline.js";
import { chain, definedRoot, line, type MadeEntry, momentNumber, type Wanted } from "./entries.js";

const MAP_SIZE = 2 ** 30;
const ndjson = (entries: readonly object[]): string => entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
const newPath = (): string => `${temporaryFolder()}/log`;

function importInto(path: string, source: ImportSource, signer = testOperator) {
  return importEntries({ path, signer, mapSize: MAP_SIZE }, source);
}

async function imported(entries: readonly MadeEntry[]) {
  const path = newPath();
  await importInto(path, [ndjson(entries)]);
  return (await openTestLog({ path })).log;
}

test("a payload that is missing is taken from a history only if another entry of it withholds that", async () => {
  const event_type = "payload_withheld";
  const said = { event_type, entry_id: 1, payload_hash: "0".repeat(64), reason: "An order.", basis: null };
  const [first, second] = chain([{ chain_version: 2 }, { chain_version: 2 }]) as [MadeEntry, MadeEntry];
  const cut = { ...first, payload: null, withheld_by: 3 };
  const historyWith = (payload: Record<string, unknown> | null) => {
    const last = payload ? { event_type, payload: { ...said, ...payload } } : {};
    return [cut, second, ...chain([{ chain_version: 2, ...last }], second)];
  };
  const path = newPath();
  for (const history of [
    historyWith(null),
    historyWith({ entry_hash: second.entry_hash }),
    historyWith({ entry_id: 2, entry_hash: second.entry_hash }),
    [cut, second],
  ])
    await expect(importInto(path, [ndjson(history)])).rejects.toMatchObject({
      code: "invalid-input",
      message: "Entry 1: The payload is missing, and no entry of the operator withholds it. Nothing was imported.",
    });
  expect([existsSync(path), existsSync(`${path}.importing`)]).toEqual([false, false]);
  await importInto(path, [ndjson(historyWith({ entry_hash: first.entry_hash }))]);
  const { log } = await openTestLog({ path });
  expect(log.entryAt(0)).toMatchObject({ payload: null, withheld_by: 3 });
  await log.close();
});

test("a source may read into the same memory again and again", async () => {
  const entries = chain([{}, {}, {}]);
  const bytes = Buffer.from(ndjson(entries));
  const path = newPath();
  const piece = Buffer.alloc(Math.ceil(bytes.length / 2));
  function* read() {
    for (let at = 0; at < bytes.length; at += piece.length) yield piece.subarray(0, bytes.copy(piece, 0, at));
  }
  await importInto(path, read());
  const { log } = await openTestLog({ path });
  expect(log.head()).toMatchObject({ entry_hash: entries.at(-1)!.entry_hash });
});

test("how far it has come is said in entries and in bytes of the source", async () => {
  const lines = chain([{}, {}, {}]).map((entry) => JSON.stringify(entry));
  const source = [`${lines[0]}\n\r\n${lines[1]}`, `\n${lines[2]}`];
  const told: unknown[] = [];
  const options = { path: newPath(), signer: testOperator, mapSize: MAP_SIZE };
  await importEntries(options, source, { progress: (done) => told.push(done.bytes) });
  const [first, second, third] = lines.map((line) => Buffer.byteLength(line));
  expect(told).toEqual([first! + 1, first! + 1 + 2 + second! + 1, first! + 1 + 2 + second! + 1 + third!]);
});

test("a file that another import has put in the place of its own is not taken for it", async () => {
  const path = newPath();
  const built = `${path}.importing/data.mdb`;
  const signer = {
    ...testOperator,
    sign: (messages: readonly Uint8Array[]) => {
      // A copy with the same bytes. It is not the file that is being written.
      copyFileSync(built, `${built}.copy`);
      renameSync(`${built}.copy`, built);
      return testOperator.sign(messages);
    },
  };
  await expect(importInto(path, [ndjson(chain([{}, {}]))], signer)).rejects.toMatchObject({
    code: "storage-failed",
    message: `The imported log could not be moved to ${path}.`,
    cause: expect.objectContaining({ message: "the file is another import's" }),
  });
  expect([existsSync(path), existsSync(`${path}.importing`)]).toEqual([false, false]);
  expect(await importInto(path, [ndjson(chain([{}, {}]))])).toMatchObject({ entry_count: 2 });
});

test("a thousand warnings are told, and all are counted", async () => {
  const proof = { ots_proof: Buffer.from("a proof").toString("base64") };
  const report = await importInto(newPath(), [ndjson(chain(Array<Wanted>(1002).fill(proof)))]);
  expect(report).toMatchObject({ entry_count: 1002, warning_count: 1002 });
  expect(report.warnings.map(({ line }) => line)).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1));
});

test("a mixed history is kept to the letter, gets one head, verifies, and appends go on behind it", async () => {
  const entries = chain([
    ...Array<Wanted>(1500).fill({ chain_version: null }),
    { id: 1700, timestamp: "2020-01-02T04:00:00+00:00", ots_proof: Buffer.from("a proof").toString("base64") },
    ...Array<Wanted>(900).fill({ chain_version: 2 }),
    { chain_version: 1, payload: { tags: ["late"] } },
  ]);
  const path = newPath();
  const report = await importInto(path, [ndjson(entries)]);
  expect(report).toEqual({
    entry_count: 2402,
    last_id: 2601,
    last_hash: entries.at(-1)!.entry_hash,
    warnings: [
      expect.objectContaining({ line: 1501, id: 1700, code: "unreadable-proof" }),
      expect.objectContaining({ line: 2402, id: 2601, code: "v1-after-v2" }),
    ],
    warning_count: 2,
  });
  expect(readdirSync(dirname(path))).toEqual(["log"]);

  const { log } = await openTestLog({ path });
  expect([...log.entries()]).toEqual(entries);
  expect(log.entryJson(1)!.toString()).toBe(JSON.stringify(entries[0]));
  expect([log.entry(1700)?.id, log.entry(1699), log.entry(2601)?.id, log.entry(2602)]).toEqual([
    1700,
    undefined,
    2601,
    undefined,
  ]);
  expect(log.treeHead(2401)).toBeNull();
  const digests = entries.map(({ entry_hash }) => entry_hash);
  expect(log.treeHead()).toMatchObject({ tree_size: 2402, root_hash: definedRoot(digests, 2), tree_version: 2 });
  const receipt = await log.append({ event_type: "note", payload: {} });
  expect(receipt).toMatchObject({ log_entry_id: 2602, leaf_index: 2402 });
  expect(log.head()).toMatchObject({ id: 2602, chain_version: 2, previous_hash: digests.at(-1) });
  expect(log.leafIndexOf(2602)).toBe(2402);
  expect(await log.verify()).toEqual({
    valid: true,
    entry_count: 2403,
    errors: [],
    warnings: [expect.objectContaining({ id: 2601, code: "v1-after-v2" })],
  });
  expect(log.stateDifferences()).toEqual([]);
});

test("pieces of any size, either line end, a last line without one, and entries as such are one source", async () => {
  const entries = chain(Array(20).fill({ payload: { text: "ü€𐍈" } }));
  const bytes = Buffer.from(ndjson(entries).replaceAll("\n", "\r\n").trimEnd());
  const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) => bytes.subarray(7 * i, 7 * i + 7));
  for (const source of [
    pieces,
    (async function* () {
      yield* pieces;
    })(),
    entries,
  ]) {
    const path = newPath();
    expect(await importInto(path, source as ImportSource)).toMatchObject({ entry_count: 20 });
    expect([...(await openTestLog({ path })).log.entries()]).toEqual(entries);
  }
});

const sound = chain(Array(6).fill({}));

test("a log that has got an entry while the history was read stays as it is", async () => {
  const path = newPath();
  const source = async function* () {
    yield sound[0]!;
    const { log } = await openTestLog({ path });
    await log.append({ event_type: "note", payload: {} });
    await log.close();
    yield sound[1]!;
  };
  const importing = importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, source());
  await expect(importing).rejects.toThrow(/already has 1 entries/);
  expect((await openTestLog({ path })).log.entryAt(0)).toMatchObject({ event_type: "note" });
});

const BROKEN: readonly [string, string[], number, RegExp][] = [
  ["cut short", [ndjson(sound.slice(0, 2)), JSON.stringify(sound[2]).slice(0, 50)], 3, /Malformed JSON/],
  ["without one line", [ndjson([...sound.slice(0, 2), ...sound.slice(3)])], 3, /previous_hash/],
  ["with a line twice", [ndjson([sound[0]!, sound[0]!])], 2, /does not ascend/],
  ["in the wrong order", [ndjson([sound[1]!, sound[0]!])], 1, /lacks its beginning/],
  ["with a changed payload", [ndjson([{ ...sound[0]!, payload: { n: 1 } }])], 1, /does not hash/],
  ["with a changed last line", [ndjson([...sound.slice(0, 5), { ...sound[5]!, payload: {} }])], 6, /does not hash/],
  ["with something else", [ndjson(sound.slice(0, 1)), "\n\nhello\n"], 4, /Malformed JSON/],
  ["with a page of the log", [JSON.stringify({ entries: sound, page: 1 })], 1, /not a log entry/],
  ["with an endless line", ["x".repeat(9 * 2 ** 20), "x".repeat(9 * 2 ** 20)], 1, /longer than/],
];
test.each(BROKEN)("a file %s is refused by line, and the log stays empty", async (_, source, number, message) => {
  const path = newPath();
  await expect(importInto(path, source)).rejects.toMatchObject({
    message: expect.stringMatching(message),
    details: [{ path: `/${number}` }],
  });
  await expect(importInto(path, source)).rejects.toThrow(`Line ${number}: `);
  expect(readdirSync(dirname(path))).toEqual([]);
  const { log } = await openTestLog({ path });
  expect(log.size).toBe(0);
  await log.close();
  expect(await importInto(path, [ndjson(sound)])).toMatchObject({ entry_count: 6 });
});

const LARGEST = 16 * 2 ** 20;
/** A line of this number of bytes. Most of its characters have two bytes, so it has far fewer characters. */
function lineOfBytes(size: number): Buffer {
  const empty = line(chain([{ payload: { text: "" } }])[0]!).length;
  const text = "ü".repeat((size - empty) >> 1) + "x".repeat((size - empty) % 2);
  const bytes = line(chain([{ payload: { text } }])[0]!);
  expect(bytes.length).toBe(size);
  return bytes;
}
const LINE_FEED = Buffer.from("\n");
const [FIRST_HALF, SECOND_HALF] = [Buffer.from("\r"), Buffer.from("\n")];

test("a line may have 16 MiB without its end, with any line end and any division into pieces", async () => {
  const largest = lineOfBytes(LARGEST);
  const tooLong = lineOfBytes(LARGEST + 1);
  const cut = (bytes: Buffer) => [bytes.subarray(0, 7), bytes.subarray(7, LARGEST - 1), bytes.subarray(LARGEST - 1)];
  const ways: Record<string, (bytes: Buffer) => Buffer[]> = {
    "in one piece": (bytes) => [Buffer.concat([bytes, LINE_FEED])],
    "in one piece, with CRLF": (bytes) => [Buffer.concat([bytes, FIRST_HALF, SECOND_HALF])],
    "in pieces, CR in one and LF in the next": (bytes) => [...cut(Buffer.concat([bytes, FIRST_HALF])), SECOND_HALF],
    "in pieces, CR and LF in pieces of their own": (bytes) => [...cut(bytes), FIRST_HALF, SECOND_HALF],
    "in pieces, without an end": cut,
    "in pieces, with a CR alone": (bytes) => [...cut(bytes), FIRST_HALF],
  };
  for (const [way, pieces] of Object.entries(ways)) {
    const path = newPath();
    const refusal = { code: "payload-too-large", details: [{ path: "/1" }] };
    await expect(importInto(path, pieces(tooLong)), way).rejects.toMatchObject(refusal);
    expect(await importInto(path, pieces(largest)), way).toMatchObject({ entry_count: 1 });
  }
});

test("a CR within a line that is too long does not make it shorter", async () => {
  const pieces = [Buffer.alloc(LARGEST, "x"), FIRST_HALF, Buffer.from("x")];
  await expect(importInto(newPath(), pieces)).rejects.toMatchObject({ code: "payload-too-large" });
  await expect(importInto(newPath(), [...pieces, LINE_FEED])).rejects.toMatchObject({ code: "payload-too-large" });
});

test("a file without entries, a log with entries, another operator's log and a failing source are refused", async () => {
  const path = newPath();
  await expect(importInto(path, [" ".trim(), "\n\n"])).rejects.toThrow("no entries");
  const failing = (async function* () {
    yield ndjson(sound.slice(0, 3));
    throw new Error("the disk is gone");
  })();
  await expect(importInto(path, failing)).rejects.toThrow("the disk is gone");
  expect(readdirSync(dirname(path))).toEqual([]);
  const { log } = await openTestLog({ path });
  await log.close();
  const { operatorKey } = await import("#cairnlog/engine/crypto/signer/operator-key.js");
  const { generatePrivateKey } = await import("#cairnlog/engine/crypto/keys/signatures.js");
  const stranger = operatorKey(generatePrivateKey("ed25519"));
  await expect(importInto(path, [ndjson(sound)], stranger)).rejects.toMatchObject({ code: "wrong-operator" });
  await importInto(path, [ndjson(sound)]);
  await expect(importInto(path, [ndjson(sound)])).rejects.toMatchObject({ code: "precondition-failed" });
  expect((await openTestLog({ path })).log.size).toBe(6);
});

test("private rows of an empty log are still there, and a left-over of another import is not", async () => {
  const path = newPath();
  const { log } = await openTestLog({ path });
  await runIn(log, (transaction) => transaction.put("passwords", "a key", { hash: "a hash" }));
  await log.close();
  mkdirSync(`${path}.importing`);
  writeFileSync(`${path}.importing/data.mdb`, "half of something");
  await importInto(path, [ndjson(sound)]);
  expect(existsSync(`${path}.importing`)).toBe(false);
  const { log: again } = await openTestLog({ path });
  expect([again.size, again.row("passwords", "a key")]).toEqual([6, { hash: "a hash" }]);
});

test("the operator speaks for the log since its first entry", async () => {
  const path = newPath();
  await importInto(path, [ndjson(sound)]);
  const store = openStore({ path, mapSize: MAP_SIZE });
  expect(store.get("meta", "log")).toMatchObject({ created_at: sound[0]!.timestamp });
  await store.close();
});

test("and since the import, where the first entry is of a time to come", async () => {
  const path = newPath();
  await importInto(path, [ndjson(chain([{ timestamp: "2250-01-01T00:00:00.000000Z" }]))]);
  const store = openStore({ path, mapSize: MAP_SIZE });
  const day = 86_400_000;
  expect(Math.abs(Date.parse(store.get("meta", "log")!.created_at) - Date.now())).toBeLessThan(day);
  await store.close();
});

test.each([
  ["2024-02-03T04:05:06Z", "2024-02-03T04:05:06.000000Z"],
  ["2024-02-03T04:05:06.1+02:30", "2024-02-03T01:35:06.100000Z"],
  ["2024-02-03T04:05:06.123456789Z", "2024-02-03T04:05:06.123456Z"],
  ["2024-02-03T04:05:06.123456", "2024-02-03T04:05:06.123456Z"],
  ["2024-02-03 04:05:06+0100", "2024-02-03T03:05:06.000000Z"],
  ["2024-02-03 04:05-05", "2024-02-03T09:05:00.000000Z"],
  ["2024-02-03", "2024-02-03T00:00:00.000000Z"],
  ["2024-02-30", undefined],
  ["3 February 2024", undefined],
  ["1706933106", undefined],
])("a timestamp spelled %s means %s", (spelled, meant) => {
  expect(instantOf(spelled)).toBe(meant);
});

test("any import: ids, dates, roots and proofs match the definition, and the log verifies", async () => {
  const wanted = fc.record({
    gap: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 40 }) }),
    minute: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(200) }),
    version: fc.constantFrom(1 as const, 2 as const, null),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(wanted, { minLength: 1, maxLength: 80 }),
      fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 3 }),
      fc.infiniteStream(fc.nat()),
      async (wishes, appends, numbers) => {
        let id = 0;
        let minute = 0;
        const entries = chain(
          wishes.map(({ gap, minute: other, version }) => {
            id += 1 + gap;
            // Version 1 may go back in time, version 2 may not.
            minute = version === 2 ? minute + 1 : (other ?? minute + 1);
            return { id, chain_version: version, timestamp: momentNumber(minute) };
          }),
        );
        const path = newPath();
        await importInto(path, [ndjson(entries)]);
        let { log } = await openTestLog({ path });
        for (const count of appends) {
          await log.append(Array.from({ length: count }, (_, n) => ({ event_type: "note", payload: { n } })));
          await log.close();
          ({ log } = await openTestLog({ path }));
        }
        const all = [...log.entries()];
        expect(all.slice(0, entries.length)).toEqual(entries);
        all.forEach((entry, leafIndex) => {
          if (log.leafIndexOf(entry.id) !== leafIndex) throw new Error(`id ${entry.id} is not at leaf ${leafIndex}`);
        });
        const ids = new Set(all.map((entry) => entry.id));
        for (let n = 0; n <= all.at(-1)!.id + 1; n++) {
          if (!ids.has(n)) expect(log.entry(n)).toBeUndefined();
          expect(log.leafIndexAfter(n)).toBe(all.filter((entry) => entry.id <= n).length);
        }
        const pick = (below: number) => numbers.next().value! % below;
        for (let i = 0; i < 10; i++) {
          const [from, to] = [pick(220), pick(220)].map((n) => parseTimestamp(momentNumber(n))).sort((a, b) => a - b);
          const expected = all.filter(({ timestamp }) => {
            const micros = parseTimestamp(timestamp);
            return micros >= from! && micros < to!;
          });
          const { entries: found, total } = log.find({ within: log.between(from!, to!) }, 0, 1000);
          expect(found.map((json) => JSON.parse(json.toString()).id)).toEqual(expected.map((entry) => entry.id));
          expect(total).toBe(expected.length);
        }
        const digests = all.map((entry) => entry.entry_hash);
        for (let i = 0; i < 6; i++) {
          const toSize = 1 + pick(digests.length);
          const fromSize = 1 + pick(toSize);
          const leafIndex = pick(toSize);
          for (const treeVersion of [1, 2] as const) {
            const proof = log.inclusionProof(leafIndex, { treeSize: toSize, treeVersion });
            const rootHash = definedRoot(digests.slice(0, toSize), treeVersion);
            expect(proof).toMatchObject({
              root_hash: rootHash,
              sth: toSize < entries.length ? null : log.treeHead(toSize),
            });
            const claim = { leaf: digests[leafIndex]!, leafIndex, treeSize: toSize, rootHash, treeVersion };
            expect(verifyInclusion({ ...claim, auditPath: proof.audit_path })).toBe(true);
            const { peaks, extension, from_sth, from_root, to_root } = log.consistencyProof(
              fromSize,
              toSize,
              treeVersion,
            );
            expect(from_sth === null).toBe(fromSize < entries.length);
            expect(from_root).toBe(definedRoot(digests.slice(0, fromSize), treeVersion));
            const roots = { fromRoot: from_root, toRoot: to_root };
            expect(verifyConsistency({ fromSize, toSize, peaks, extension, ...roots, treeVersion })).toBe(true);
          }
        }
        expect(log.stateDifferences()).toEqual([]);
        expect(await log.verify()).toMatchObject({ valid: true, errors: [] });
        await log.close();
      },
    ),
    { numRuns: 15 },
  );
});

test("a seam that is not where the entries have it is found by verification", async () => {
  const log = await imported(chain([{}, {}, { id: 9 }, {}, { timestamp: momentNumber(1) }]));
  expect(await log.verify()).toMatchObject({ valid: true });
  await runIn(log, (transaction) => {
    transaction.put("seams", 9, undefined);
    transaction.put("seams", 11, undefined);
  });
  const { errors } = await log.verify();
  expect(errors.map(({ id, code }) => [id, code])).toEqual([
    [9, "id-mismatch"],
    [11, "seam-missing"],
  ]);
});

test("a known digest of another algorithm is checked even if it says the entry hash", async () => {
  const [first] = chain([{}]);
  const digest = { algorithm: "sha3-256", digest_hex: first!.entry_hash, is_primary: false };
  const entry = { ...first!, entry_hashes: [...first!.entry_hashes, digest] };
  await expect(importInto(newPath(), [line(entry)])).rejects.toThrow("The sha3-256 digest does not match the content.");
});

test("unknown digests are kept and named, known ones are checked", async () => {
  const [first] = chain([{}]);
  const digest = { algorithm: "sha3-512", digest_hex: "ab".repeat(64), is_primary: false };
  const entry = { ...first!, entry_hashes: [...first!.entry_hashes, digest] };
  const path = newPath();
  const report = await importInto(path, [line(entry)]);
  expect(report.warnings).toEqual([expect.objectContaining({ code: "unknown-digest", line: 1 })]);
  const { log } = await openTestLog({ path });
  expect(log.entry(1)).toEqual(entry);
  expect(await log.verify()).toMatchObject({ valid: true, warnings: [{ id: 1, code: "unknown-digest" }] });
});
