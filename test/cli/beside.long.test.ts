/** What the command keeps beside a document: each attestation and each proof has a file of its own, and `verify` reads all. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startTestService, type TestService } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { scratchFolder } from "../service.js";
import { cairnlog, pin } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());
const at = (name: string) => join(scratch.path, name);
const logs: TestService[] = [];
const signers = { ada: newSigner(), bob: newSigner() };
let folder: string;
let file: string;
let count = 0;

beforeAll(async () => {
  for (const name of ["one.example", "two.example"]) {
    const log = await startTestService({ SERVICE_LOG_NAME: name, SERVICE_CHECKPOINT_INTERVAL_S: "1" });
    writeFileSync(at(`operator${logs.push(log) - 1}.pem`), (await log.get("/log/operator-key")).body.public_key);
    await pin(log.url);
  }
  for (const [name, { privateKey }] of Object.entries(signers)) writeFileSync(at(`${name}.pem`), privateKey);
});

beforeEach(() => {
  folder = at(`papers${count++}`);
  mkdirSync(folder);
  file = join(folder, "doc.pdf");
  writeFileSync(file, `A document in ${folder}.`);
});

type Signer = keyof typeof signers;
const attest = async (signer: Signer, log: number, ...more: string[]): Promise<string> => {
  const options = ["--key", at(`${signer}.pem`), "--server", logs[log]!.url, "--json"];
  const run = await cairnlog(["attest", file, ...options, ...more]);
  expect(run).toMatchObject({ code: 0, stderr: "" });
  return JSON.parse(run.stdout).bundle;
};
const verify = (log: number, ...more: string[]) =>
  cairnlog(["verify", file, "--operator-key", at(`operator${log}.pem`), ...more]);
const verdicts = async (log: number, ...more: string[]) => {
  const { code, stdout } = await verify(log, ...more, "--json");
  const lines = stdout.trimEnd().split("\n");
  return { code, receipts: lines.map((line) => JSON.parse(line)).map(({ receipt, valid }) => [receipt, valid]) };
};
const nth = (number: number) => join(folder, `doc.pdf.attestation.${number === 1 ? "" : `${number}.`}json`);
const names = () => readdirSync(folder).sort();

describe("attest", () => {
  test("keeps the receipt of each signer, type, statement, log and content, and writes that of the same one again", async () => {
    const other = "Another content.";
    const made = [
      await attest("ada", 0),
      await attest("bob", 0),
      await attest("ada", 0, "--type", "peer_review"),
      await attest("ada", 0, "--intent", "Read it."),
      await attest("ada", 1),
    ];
    const before = readFileSync(file);
    writeFileSync(file, other);
    made.push(await attest("ada", 0));
    writeFileSync(file, before);
    expect(made).toEqual([1, 2, 3, 4, 5, 6].map(nth));
    const texts = made.map((path) => readFileSync(path, "utf8"));
    expect(new Set(texts.map((text) => JSON.parse(text).entry.entry_hash)).size).toBe(6);
    const kept = names();
    expect(kept).toHaveLength(7);

    expect(await attest("bob", 0)).toBe(nth(2));
    expect(await attest("ada", 1)).toBe(nth(5));
    expect(await attest("ada", 0)).toBe(nth(1));
    expect(names()).toEqual(kept);
    expect(made.map((path) => JSON.parse(readFileSync(path, "utf8")).entry)).toEqual(
      texts.map((text) => JSON.parse(text).entry),
    );
  });

  test("never takes the name of a file that is no receipt of this attestation, also where numbers are missing", async () => {
    writeFileSync(nth(1), "damaged");
    expect(await attest("ada", 0)).toBe(nth(2));
    await attest("bob", 0);
    rmSync(nth(1));
    expect(await attest("ada", 0)).toBe(nth(2));
    expect(await attest("ada", 0, "--type", "peer_review")).toBe(nth(4));
    expect(names()).toEqual(["doc.pdf", ...[2, 3, 4].map((number) => `doc.pdf.attestation.${number}.json`)]);
  });

  test("of a directory takes none of them for documents, and keeps those of every signer", async () => {
    writeFileSync(join(folder, "doc.pdf.2"), "A document whose name looks like a second one.");
    const run = (signer: Signer, command = "attest") =>
      cairnlog([command, folder, "--key", at(`${signer}.pem`), "--server", logs[0]!.url]);
    for (const signer of ["ada", "bob", "ada"] as const)
      expect(await run(signer)).toMatchObject({ code: 0, stderr: "Attesting 2 files.\n" });
    expect(names()).toEqual(
      ["doc.pdf", "doc.pdf.2"]
        .flatMap((name) => [name, `${name}.attestation.2.json`, `${name}.attestation.json`])
        .sort(),
    );
    const verified = await cairnlog(["verify", folder, "--operator-key", at("operator0.pem")]);
    expect(verified.code).toBe(0);
    expect(verified.stdout).toMatch(/\n2 files verified\./);
    expect(verified.stdout.match(/: verified: /g)).toHaveLength(4);
  });
});

describe("verify", () => {
  test("reads all receipts beside the file, and says each", async () => {
    await attest("ada", 0);
    await attest("bob", 0, "--type", "peer_review");
    expect(await verdicts(0)).toEqual({
      code: 0,
      receipts: [
        [nth(1), true],
        [nth(2), true],
      ],
    });
    const { code, stdout } = await verify(0);
    expect(code).toBe(0);
    expect(stdout).toMatch(/doc\.pdf, doc\.pdf\.attestation\.json: verified\n/);
    expect(stdout).toMatch(/doc\.pdf, doc\.pdf\.attestation\.2\.json: verified\n/);
    for (const { fingerprint } of Object.values(signers)) expect(stdout).toContain(`signed by     ${fingerprint}`);
    expect(await verdicts(0, "--attestation", nth(2))).toEqual({ code: 0, receipts: [[nth(2), true]] });
  });

  test("finds them where the first one was moved away", async () => {
    await attest("ada", 0);
    await attest("bob", 0);
    renameSync(nth(1), join(folder, "kept.json"));
    expect(await verdicts(0)).toEqual({ code: 0, receipts: [[nth(2), true]] });
  });

  test("one of another signer, log or content does not count, and is said, where another one holds", async () => {
    await attest("ada", 0);
    await attest("bob", 0);
    await attest("ada", 1);
    expect(await verdicts(0)).toMatchObject({ code: 0, receipts: [1, 2, 3].map((n) => [nth(n), n !== 3]) });
    expect(await verdicts(1)).toMatchObject({ code: 0, receipts: [1, 2, 3].map((n) => [nth(n), n === 3]) });
    expect(await verdicts(0, "--signer", signers.bob.fingerprint)).toMatchObject({
      code: 0,
      receipts: [1, 2, 3].map((n) => [nth(n), n === 2]),
    });
    const passed = await verify(0, "--signer", signers.bob.fingerprint);
    expect(passed.stdout).toMatch(
      /doc\.pdf, doc\.pdf\.attestation\.json: passed over: The signer is none of those that you named\.\n/,
    );
    expect(await verdicts(0, "--signer", newSigner().fingerprint)).toMatchObject({ code: 1 });

    const first = readFileSync(file);
    writeFileSync(file, "The next version.");
    expect((await verdicts(0)).code).toBe(1);
    await attest("ada", 0);
    expect(await verdicts(0)).toMatchObject({ code: 0, receipts: [1, 2, 3, 4].map((n) => [nth(n), n === 4]) });
    writeFileSync(file, first);
    expect((await verdicts(0)).code).toBe(0);
  });

  test("one that is damaged or forged counts against the file, whatever else holds", async () => {
    await attest("ada", 0);
    const text = readFileSync(nth(1), "utf8");
    const bundle = JSON.parse(text);
    const forged = { ...bundle, attestation: { ...bundle.attestation, type: "peer_review" } };
    for (const wrong of ["", "{", JSON.stringify(forged)]) {
      writeFileSync(nth(2), wrong);
      const { code, receipts } = await verdicts(0);
      expect([code, receipts.map(([, valid]) => valid)]).toEqual([1, [true, false]]);
    }
  });
});

describe("receipt", () => {
  const receipt = (named: string, log: number) => cairnlog(["receipt", named, "--server", logs[log]!.url, "--json"]);
  const written = (stdout: string): string[] =>
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).file);

  test("of a file writes the proof of each attestation that is in this log, and overwrites no other", async () => {
    await attest("ada", 0);
    await attest("ada", 1);
    await attest("bob", 1);
    const [one, two, three] = ["", ".2", ".3"].map((number) => `${file}.tlog-proof${number}`) as [
      string,
      string,
      string,
    ];
    const first = await receipt(file, 0);
    expect([first.code, written(first.stdout)]).toEqual([0, [one]]);
    const text = readFileSync(one, "utf8");
    const second = await receipt(file, 1);
    expect([second.code, written(second.stdout)]).toEqual([0, [two, three]]);
    expect(readFileSync(one, "utf8")).toBe(text);
    expect(written((await receipt(file, 0)).stdout)).toEqual([one]);
    expect(names().filter((name) => name.includes("tlog-proof"))).toHaveLength(3);

    const vkey = (await logs[1]!.send("GET", "/tlog/vkey")).text.trim();
    expect(await verdicts(1, "--proof", three, "--vkey", vkey)).toMatchObject({
      code: 0,
      receipts: [1, 2, 3].map((n) => [nth(n), n === 3]),
    });
    expect((await verdicts(1, "--proof", one, "--vkey", vkey)).code).toBe(1);
    // The proofs are no documents.
    expect((await cairnlog(["verify", folder, "--operator-key", at("operator1.pem"), "--json"])).code).toBe(0);
  });

  test("of an entry does not overwrite that of another log's entry with the same number", async () => {
    const here = process.cwd();
    process.chdir(folder);
    try {
      for (const [log, name] of [
        [0, "1.tlog-proof"],
        [1, "1.tlog-proof.2"],
        [0, "1.tlog-proof"],
      ] as const)
        expect(written((await receipt("1", log)).stdout)).toEqual([name]);
    } finally {
      process.chdir(here);
    }
  });
});
