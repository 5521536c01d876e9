/** `cairnlog receipt`, and `cairnlog verify` of its files, as somebody without the service sees them. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import {
  cosignatureMessage,
  encodeCosignature,
  formatVkey,
  noteKey,
  noteKeyId,
  parseNote,
  parsePublicKey,
  parseTlogProof,
  signatureLine,
} from "#cairnlog/engine/verify/index.js";
import { anyEvent } from "../anyevent.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService } from "../server/harness.js";
import { scratchFolder } from "../service.js";
import { newMlDsaSigner, unknownVkey } from "../verify/note/notes.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());
const file = join(scratch.path, "3.tlog-proof");
let service: TestService;
let vkey: string;
/** The proof file of entry 3. */
let text: string;

beforeAll(async () => {
  service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1", SERVICE_LOG_NAME: "log.example" });
  await service.server.registry.log.append(Array.from({ length: 300 }, (_, i) => anyEvent({ i })));
  vkey = (await service.send("GET", "/tlog/vkey")).text.trim();
  const { code, stdout, stderr } = await receipt("3", "--out", file, "--vkey", vkey);
  // The service is new to the command, which says so.
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^The operator key of [^\n]*\n$/) });
  expect(stdout).toBe(`${file}: entry 3, under the checkpoint of 300 entries of log.example/tlog\n`);
  text = readFileSync(file, "utf8");
});

const receipt = (...args: string[]) => cairnlog(["receipt", ...args, "--server", service.url]);
const verify = (...args: string[]) => cairnlog(["verify", ...args]);

/** A changed copy of the file. */
function changed(change: (text: string) => string, of = text): string {
  const path = join(scratch.path, "changed.tlog-proof");
  writeFileSync(path, change(of));
  expect(change(of)).not.toBe(of);
  return path;
}

describe("a proof file", () => {
  test("has the entry, its place and the checkpoint, and holds with the log's key", async () => {
    const { index, extra, checkpoint } = parseTlogProof(text);
    const { ots_proof: _, ...entry } = service.server.registry.log.entryAt(2)!;
    expect([index, JSON.parse(Buffer.from(extra!).toString())]).toEqual([2, entry]);
    expect(checkpoint).toBe((await service.send("GET", "/tlog/checkpoint")).text);
    const { code, stdout } = await verify(file, "--vkey", vkey);
    expect(code).toBe(0);
    expect(stdout).toBe(
      `${file}: verified
  event         ${entry.event_type}
  when          ${entry.timestamp}, by the log's clock
  in            log.example/tlog, a tree of 300 leaves
  at            entry number 3; leaf 2 of the tree, counted from 0
  witnessed by  nobody
`,
    );
    expect(JSON.parse((await verify(file, "--vkey", vkey, "--json")).stdout)).toEqual({
      ...{
        file,
        verdict: "valid",
        valid: true,
        reason: null,
        withheld_by: null,
        entry,
        leaf_index: 2,
        origin: "log.example/tlog",
        tree_size: 300,
      },
      witnesses: [],
    });
  });

  test("that was changed anywhere does not", async () => {
    const other = parseTlogProof(text).hashes.at(-1)!;
    const entry = (change: (json: string) => string) => (all: string) =>
      all.replace(/^extra (.*)$/m, (_, base64: string) => {
        const json = change(Buffer.from(base64, "base64").toString());
        return `extra ${Buffer.from(json).toString("base64")}`;
      });
    const changes = [
      (all: string) => all.replace("index 2", "index 3"),
      (all: string) => all.replace(Buffer.from(other).toString("base64"), Buffer.alloc(32, 1).toString("base64")),
      (all: string) => all.replace("\n300\n", "\n301\n"),
      (all: string) => all.replace("tlog-proof@v1", "tlog-proof@v2"),
      entry((json) => json.replace('"i":2', '"i":3')),
      entry((json) => json.replace(/"entry_hash":"../, '"entry_hash":"00')),
      entry((json) => JSON.stringify({ ...JSON.parse(json), event_type: "key_revocation" })),
      entry((json) => JSON.stringify({ ...JSON.parse(json), id: 2 })),
      ...["{}", "[]", "null", "3", '"text"'].map((other) => entry(() => other)),
      entry(() => "no json"),
    ];
    for (const change of changes) {
      const { code, stdout } = await verify(changed(change), "--vkey", vkey);
      expect([code, stdout]).toEqual([1, expect.stringMatching(/: NOT verified\n {2}.{8,}\.\n$/)]);
    }
  });

  test("does not hold with another log's key, and one that holds does not help one that does not", async () => {
    const key = operatorKey(generatePrivateKey("ed25519"));
    const stranger = formatVkey(noteKey("log.example/tlog", parsePublicKey(key.public.pem)));
    expect((await verify(file, "--vkey", stranger)).code).toBe(1);
    const { code, stdout } = await verify(file, join(scratch.path, "missing"), "--vkey", vkey);
    expect([code, stdout]).toEqual([1, expect.stringMatching(/^\S+: verified\n[\s\S]*NOT verified/)]);
  });

  test("that is bare holds for the hash that is given", async () => {
    const bare = join(scratch.path, "bare.tlog-proof");
    expect((await receipt("3", "--bare", "--out", bare, "--json")).code).toBe(0);
    expect(parseTlogProof(readFileSync(bare, "utf8")).extra).toBeNull();
    const [hash, other] = [2, 3].map((index) => service.server.registry.log.entryAt(index)!.entry_hash) as [
      string,
      string,
    ];
    expect((await verify(bare, "--vkey", vkey)).stdout).toContain("--entry-hash");
    expect(await verify(bare, "--vkey", vkey, "--entry-hash", hash)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("has the entry's hash alone"),
    });
    expect((await verify(bare, "--vkey", vkey, "--entry-hash", other)).code).toBe(1);
    expect((await verify(file, "--vkey", vkey, "--entry-hash", other)).code).toBe(1);
  });
});

test("a policy says whose cosignatures are needed", async () => {
  const witness = operatorKey(generatePrivateKey("ed25519"));
  const publicKey = parsePublicKey(witness.public.pem);
  const name = "witness.example";
  const policy = join(scratch.path, "policy");
  const key = noteKey(name, publicKey, "cosignature/v1");
  writeFileSync(policy, `log ${vkey}\nwitness w1 ${formatVkey(key)}\nquorum w1\n`);
  expect(await verify(file, "--policy", policy)).toMatchObject({ code: 1, stdout: expect.stringContaining("quorum") });
  const time = 1_700_000_000;
  const { text: signed } = parseNote(parseTlogProof(text).checkpoint)!;
  const [signature] = await witness.sign([cosignatureMessage(key, time, signed)!]);
  const line = signatureLine(
    name,
    noteKeyId(name, publicKey, "cosignature/v1"),
    encodeCosignature({ time, signature: signature! }),
  );
  const cosigned = changed((all) => all + line);
  const { code, stdout } = await verify(cosigned, "--policy", policy);
  expect([code, stdout]).toEqual([0, expect.stringContaining("\n  witnessed by  w1\n")]);
});

test("a witness of ML-DSA-44 counts in a policy, and one with a key of an unknown type makes nothing worse", async () => {
  const witness = newMlDsaSigner("pq.example");
  const policy = join(scratch.path, "pq-policy");
  const lines = `log ${vkey}\nwitness pq ${witness.vkey}\nwitness later ${unknownVkey("later.example")}\ngroup G any pq later\n`;
  writeFileSync(policy, `${lines}quorum G\n`);
  expect(await verify(file, "--policy", policy)).toMatchObject({ code: 1, stdout: expect.stringContaining("quorum") });
  const { text: signed } = parseNote(parseTlogProof(text).checkpoint)!;
  const { code, stdout } = await verify(
    changed((all) => all + witness.line(signed)),
    "--policy",
    policy,
  );
  expect([code, stdout]).toEqual([0, expect.stringContaining("\n  witnessed by  pq\n")]);
  writeFileSync(policy, `${lines}quorum later\n`);
  expect(await verify(file, "--policy", policy)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("The quorum of the policy cannot be reached"),
  });
});

test("an entry that is not covered yet is waited for; one that does not exist is not", async () => {
  const { log } = service.server.registry;
  await log.append(anyEvent({ late: true }));
  expect(await receipt(`${log.size}`, "--out", join(scratch.path, "late.tlog-proof"))).toMatchObject({ code: 0 });
  expect(await receipt("9999", "--out", join(scratch.path, "none"))).toMatchObject({ code: 1 });
});

test("it is waited for as long as --wait says", async () => {
  const { log } = service.server.registry;
  const checkpoint = (await service.send("GET", "/tlog/checkpoint")).text;
  await log.append(anyEvent({ later: true }));
  const proxy = await LyingProxy.before(service.url);
  proxy.lie = (path, answer) => (path === "/tlog/checkpoint" ? checkpoint : answer);
  for (const seconds of [0, 1]) {
    proxy.asked.length = 0;
    const args = [`${log.size}`, "--wait", `${seconds}`, "--out", join(scratch.path, "none")];
    const { code, stderr } = await cairnlog(["receipt", ...args, "--server", proxy.url]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`and not yet entry ${log.size}.`)]);
    expect(proxy.asked.filter((asked) => asked === "GET /tlog/checkpoint")).toHaveLength(seconds + 1);
  }
});

test.each([
  [["receipt"], "ENTRY is missing"],
  [["receipt", "1", "--wait", "soon"], "--wait must be a whole number"],
  [["receipt", "x"], "ENTRY must be a whole number"],
  [["receipt", "1", "2"], "one argument too many"],
  [["verify", "a", "--vkey", "x", "--operator-key", "y"], "are for proof files"],
  [["verify", "a", "--policy", "x", "--composite"], "are for proof files"],
  [["verify", "a", "b", "--vkey", "x", "--entry-hash", "y"], "goes with one FILE"],
  [["verify", "a", "--entry-hash", "y"], "goes with --vkey or --policy"],
])("%j is not understood", async (args, words) => {
  expect(await cairnlog(args)).toMatchObject({ code: 2, stderr: expect.stringContaining(words) });
});
