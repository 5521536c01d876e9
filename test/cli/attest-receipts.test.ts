/** Where `cairnlog attest` keeps receipts: a place for each is made before anything is sent, and none is lost. */
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { hiddenTitle } from "#cairnlog/engine/verify/events/hashed.js";
import { decodeName, fromArgument, onDisk } from "#cairnlog/server/cli/files/disk-names.js";
import { DocumentFiles } from "#cairnlog/server/cli/files/document-files.js";
import { hashFile, hashForOthers } from "#cairnlog/server/cli/files/file-hash.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { begin, cairnlog, interrupt, pin } from "./harness.js";

const data = temporaryFolder();
const keyFile = join(temporaryFolder(), "me.pem");
let service: TestService;
let proxy: LyingProxy;
/** The numbers of attestations in the requests that were sent. */
const sent: number[] = [];
beforeAll(async () => {
  service = await startTestService({ SERVICE_DATA_DIR: data });
  proxy = await LyingProxy.before(service.url);
  await pin(proxy.url);
  writeFileSync(keyFile, newSigner().privateKey);
});

let folder: string;
const at = (name: string) => join(folder, name);
beforeEach(() => {
  folder = temporaryFolder();
  sent.length = 0;
  proxy.repent();
  proxy.twist = (path, body) => {
    if (path.startsWith("/attestations")) sent.push(body.submissions?.length ?? 1);
    return body;
  };
});
const write = (...names: string[]) => {
  for (const name of names) writeFileSync(at(name), `This is ${name} in ${folder}.`);
};
const attest = (...args: readonly string[]) => cairnlog(["attest", ...args, "--key", keyFile, "--server", proxy.url]);
const verify = (...args: string[]) => cairnlog(["verify", ...args, "--operator-key", join(data, "operator.pub.pem")]);
const id = (stdout: string) => Number(/: entry (\d+)/.exec(stdout)![1]);

describe("before anything is sent, the receipt has a place", () => {
  test("so nothing is sent of a file whose receipt has none, alone or among others", async () => {
    const long = "n".repeat(240);
    write(long, "short");
    const alone = await attest(at(long));
    expect(alone).toMatchObject({ code: 1, stdout: "" });
    expect(alone.stderr).toMatch(
      /No receipt of \S+ could be kept, so nothing of it was sent: .*ENAMETOOLONG.* --out FILE/,
    );
    expect(sent).toEqual([]);
    const both = await attest(folder);
    expect(both.code).toBe(1);
    expect(both.stderr).toMatch(/1 of 2 files are not attested\.\n$/);
    expect(sent).toEqual([1]);
    expect(readdirSync(folder).sort()).toEqual([long, "short", "short.attestation.json"]);
  });

  test.each([235, 238])(
    "nor where the receipt's draft has none, because the name of %i bytes is too long for it",
    async (length) => {
      const long = "n".repeat(length);
      write(long);
      for (const to of [[], ["--out", at(`${long}.attestation.json`)]]) {
        const refused = await attest(at(long), ...to);
        expect(refused).toMatchObject({
          code: 1,
          stdout: "",
          stderr: expect.stringContaining("so nothing of it was sent"),
        });
        expect(sent).toEqual([]);
        expect(readdirSync(folder)).toEqual([long]);
      }
    },
  );

  test("nor where --out names what takes no receipt: a pipe, from which nothing is read", async () => {
    write("a");
    execFileSync("mkfifo", [at("pipe")]);
    const refused = await attest(at("a"), "--out", at("pipe"));
    expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("EEXIST") });
    expect(sent).toEqual([]);
    expect(readdirSync(folder).sort()).toEqual(["a", "pipe"]);
  });

  test("and an empty one that a killed run left is filled", async () => {
    write("a");
    writeFileSync(at("a.attestation.json"), "");
    expect(await verify(at("a"))).toMatchObject({ code: 1 });
    expect(await attest(at("a"))).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${at("a")}.attestation.json,`),
    });
    expect(readdirSync(folder).sort()).toEqual(["a", "a.attestation.json"]);
  });

  test("whatever numbers are in the names beside it", () => {
    for (const number of ["9007199254740993", "100000000000000000000", "123456789"])
      writeFileSync(at(`a.attestation.${number}.json`), "{}");
    expect(new DocumentFiles().receipts(at("a"))).toEqual([at("a.attestation.123456789.json")]);
    expect(new DocumentFiles().open(at("a"), "receipt").path).toBe(at("a.attestation.123456790.json"));
  });

  test("two runs at once keep both receipts, also where one has taken the empty file of the other", async () => {
    write("a");
    const runs = ["Read.", "Approved."].map((intent) => attest(at("a"), "--intent", intent));
    // Both have their places before either is answered.
    let answered = 0;
    let go = () => {};
    const bothSent = new Promise<void>((resolve) => {
      go = resolve;
    });
    proxy.seize = (path) => {
      if (path.startsWith("/attestations") && ++answered === runs.length) go();
      return false;
    };
    const done = await Promise.all(runs);
    await bothSent;
    expect(done.map(({ code }) => code)).toEqual([0, 0]);
    const names = readdirSync(folder).sort();
    expect(names).toEqual(["a", "a.attestation.2.json", "a.attestation.json"]);
    const intents = names
      .slice(1)
      .map((name) => JSON.parse(readFileSync(at(name), "utf8")).attestation.intent_statement);
    expect(intents.sort()).toEqual(["Approved.", "Read."]);
    for (const { stdout } of done)
      expect(readFileSync(/, (\S+json),/.exec(stdout)![1]!, "utf8")).toContain(`"id": ${id(stdout)}`);
    expect(await verify(at("a"))).toMatchObject({ code: 0 });
  });

  test("which is removed when the service refuses", async () => {
    write("a", "b");
    const { code } = await attest(folder, "--type", "nonsense");
    expect(code).toBe(1);
    expect((await attest(at("a"), "--type", "nonsense")).code).toBe(1);
    expect(readdirSync(folder).sort()).toEqual(["a", "b"]);
  });
});

describe("a receipt that cannot be written after all", () => {
  test("is counted apart, and comes with the next run", async () => {
    write("a", "b");
    mkdirSync(at("gone"));
    writeFileSync(at("gone/c"), "c");
    proxy.lie = (path, answer) => {
      if (path.startsWith("/attestations") && existsSync(at("gone"))) renameSync(at("gone"), at("elsewhere"));
      return answer;
    };
    const run = await attest(at("a"), at("b"), at("gone/c"));
    expect(run.code).toBe(1);
    expect(run.stdout.match(/: entry/g)).toHaveLength(2);
    expect(run.stderr).toMatch(/gone\/c is recorded as entry \d+, but its receipt is not written: .*\(ENOENT\)/);
    expect(run.stderr).toMatch(
      /\n1 of 3 files are recorded without a receipt here\. Run the command again to get it\.\n$/,
    );
    expect(run.stderr).not.toContain("not attested");
    const again = await attest(at("elsewhere/c"));
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("(recorded before)") });
  });

  test("shows the salt of a private title, which nothing else has", async () => {
    mkdirSync(at("gone"));
    writeFileSync(at("gone/c"), "c");
    let recorded = "";
    proxy.lie = (path, answer, request) => {
      if (path.startsWith("/attestations")) {
        recorded = request.manifest.document.title;
        renameSync(at("gone"), at("elsewhere"));
      }
      return answer;
    };
    const run = await attest(at("gone/c"), "--private-title", "--title", "Ours");
    expect(run.code).toBe(1);
    const [, shown] = /Keep this, its private_title: (\{.*\})\n/.exec(run.stderr) ?? [];
    expect(hiddenTitle(JSON.parse(shown!))).toBe(recorded);
  });
});

describe("an answer that does not hold and cannot be kept", () => {
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  type Any = any;
  const wrong = (receipt: Any) => ({ ...receipt, entry_hash: "0".repeat(64) });

  test.each([["c"], ["c", "d", "e"]])("is shown, with the private title: %s", async (...names) => {
    mkdirSync(at("gone"));
    for (const name of names) writeFileSync(at(`gone/${name}`), `${name} in ${folder}`);
    proxy.lie = (path, answer) => {
      if (!path.startsWith("/attestations")) return answer;
      renameSync(at("gone"), at("elsewhere"));
      return answer.results
        ? { results: answer.results.map(({ receipt, ...rest }: Any) => ({ ...rest, receipt: wrong(receipt) })) }
        : wrong(answer);
    };
    const run = await attest(...names.map((name) => at(`gone/${name}`)), "--private-title");
    expect([run.code, run.stdout]).toEqual([1, ""]);
    const shown = [...run.stderr.matchAll(/The service says that \S+ is recorded as entry (\d+)\..*: (\{.*\})\n/g)];
    expect(shown, run.stderr).toHaveLength(names.length);
    for (const [i, [, entry, text]] of shown.entries()) {
      const { answer, manifest, private_title } = JSON.parse(text!);
      expect([answer.log_entry_id, private_title.title]).toEqual([Number(entry), names[i]]);
      expect(hiddenTitle(private_title)).toBe(manifest.document.title);
    }
    // Why it does not hold is said, too.
    expect(run.stderr).toMatch(/cairnlog: .*hash/);
  });
});

describe("--out", () => {
  test("names the file of the one receipt, which is never written over", async () => {
    write("a", "b");
    expect(await attest(at("a"), "--out", at("receipt.json"))).toMatchObject({ code: 0 });
    expect(await verify(at("a"), "--attestation", at("receipt.json"))).toMatchObject({ code: 0 });
    const before = readFileSync(at("receipt.json"), "utf8");
    // The same again has its receipt.
    expect(await attest(at("a"), "--out", at("receipt.json"))).toMatchObject({ code: 0 });
    sent.length = 0;
    const other = await attest(at("b"), "--out", at("receipt.json"));
    expect(other).toMatchObject({ code: 1, stderr: expect.stringMatching(/exists already \(EEXIST\)/) });
    expect(sent).toEqual([]);
    expect(readFileSync(at("receipt.json"), "utf8")).toBe(before);
    expect(await attest(at("a"), at("b"), "--out", at("receipt.json"))).toMatchObject({ code: 2 });
  });

  test("names the directory of several, with the folders of the files", async () => {
    mkdirSync(at("in/sub"), { recursive: true });
    write("in/a", "in/sub/b", "c");
    expect(await attest(at("in"), at("c"), "--out", at("out"))).toMatchObject({ code: 0 });
    expect(readdirSync(at("out"), { recursive: true }).sort()).toEqual([
      "a.attestation.json",
      "c.attestation.json",
      "sub",
      "sub/b.attestation.json",
    ]);
    expect(await verify(at("in/sub/b"), "--attestation", at("out/sub/b.attestation.json"))).toMatchObject({ code: 0 });
    expect(readdirSync(at("in"), { recursive: true }).sort()).toEqual(["a", "sub", "sub/b"]);
    sent.length = 0;
    expect(await attest(at("in"), "--out", at("out"))).toMatchObject({ code: 0 });
    expect(await attest(at("c"), "--out", `${at("out")}/`)).toMatchObject({ code: 0 });
    expect(sent).toEqual([]);
  });
});

describe("a file that has its receipt", () => {
  test("is not sent again, but told with its entry", async () => {
    write("a", "b");
    const first = await attest(folder);
    write("c");
    const again = await attest(folder);
    expect(sent).toEqual([2, 1]);
    expect(again.stdout.match(/\(recorded before\)/g)).toHaveLength(2);
    expect(id(again.stdout)).toBe(id(first.stdout));
    expect(again.stdout.match(/attestation [0-9a-f-]{36}$/gm)).toHaveLength(3);
  });

  test("is sent by each of its signers, who have receipts of their own", async () => {
    write("a");
    const otherKey = join(temporaryFolder(), "other.pem");
    writeFileSync(otherKey, newSigner().privateKey);
    const byOther = () => cairnlog(["attest", at("a"), "--key", otherKey, "--server", proxy.url]);
    const mine = await attest(at("a"));
    const others = await byOther();
    expect([mine.code, others.code, sent]).toEqual([0, 0, [1, 1]]);
    expect(id(others.stdout)).toBeGreaterThan(id(mine.stdout));
    const keys = ["a.attestation.json", "a.attestation.2.json"].map(
      (name) => JSON.parse(readFileSync(at(name), "utf8")).public_key,
    );
    expect(new Set(keys).size).toBe(2);
    // Each of them has it already, and hears of the own entry.
    for (const [run, first] of [
      [attest(at("a")), mine],
      [byOther(), others],
    ] as const)
      expect(id((await run).stdout)).toBe(id(first.stdout));
    expect(sent).toEqual([1, 1]);
  });

  test("is sent if the receipt is of another attestation, does not hold, or is of what was in the file before", async () => {
    write("a");
    await attest(at("a"));
    await attest(at("a"), "--intent", "Read.");
    await attest(at("a"), "--type", "peer_review");
    await attest(at("a"), "--title", "A");
    expect(sent).toEqual([1, 1, 1, 1]);
    const receipt = readFileSync(`${at("a")}.attestation.json`, "utf8");
    writeFileSync(`${at("a")}.attestation.json`, receipt.replace(/"root_hash": "../, '"root_hash": "00'));
    expect(await attest(at("a"))).toMatchObject({ code: 0 });
    expect(await verify(at("a"), "--attestation", `${at("a")}.attestation.json`)).toMatchObject({ code: 0 });
    writeFileSync(at("a"), "other");
    await attest(at("a"));
    expect(sent).toEqual([1, 1, 1, 1, 1, 1]);
  });
});

test("an interrupt while a file is read leaves nothing behind, and says that nothing was recorded", async () => {
  write("a");
  execFileSync("mkfifo", [at("pipe")]);
  const run = begin(["attest", at("a"), at("pipe"), "--key", keyFile, "--server", proxy.url]);
  while (!existsSync(at("a.attestation.json"))) await new Promise((resolve) => setTimeout(resolve, 5));
  await interrupt("SIGINT");
  writeFileSync(at("pipe"), "x");
  expect(await run.ended).toMatchObject({
    code: 1,
    stdout: "",
    stderr:
      "Recorded, with their receipts: 0 of 2 files. Run the command again for the others.\ncairnlog: Interrupted.\n",
  });
  expect(readdirSync(folder).sort()).toEqual(["a", "pipe"]);
  expect(sent).toEqual([]);
});

test("an interrupt while an answer is awaited keeps its receipts", async () => {
  write("a", "b");
  proxy.lie = (path, answer) => {
    if (path.startsWith("/attestations")) process.emit("SIGINT");
    return answer;
  };
  // It is said where the signal comes, which is not in the command that runs in the test.
  const said = vi.spyOn(console, "error");
  const run = await attest(at("a"), at("b"));
  expect(run).toMatchObject({ code: 0, stdout: expect.stringMatching(/: entry .*\n.*: entry/) });
  expect(said.mock.calls.join("\n")).toContain(
    "Interrupted: ending when no answer is due any more, so that no receipt is lost.",
  );
  said.mockRestore();
  expect(await verify(at("a"), at("b"))).toMatchObject({ code: 0 });
});

describe("a file that changes while it is hashed", () => {
  async function whileHashing(hash: (path: string) => Promise<string>, change: () => void): Promise<unknown> {
    let isHashing = true;
    const hashed = hash(at("big")).finally(() => {
      isHashing = false;
    });
    hashed.catch(() => {});
    while (isHashing) {
      change();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return hashed;
  }
  beforeEach(() => writeFileSync(at("big"), Buffer.alloc(32 << 20)));

  test.each([hashFile, hashForOthers])("is said to: it grows", async (hash) => {
    await expect(whileHashing(hash, () => appendFileSync(at("big"), "x"))).rejects.toThrow(
      /big changed while it was hashed/,
    );
  });

  test("is said to: another one is put in its place", async () => {
    const replaced = whileHashing(hashFile, () => {
      writeFileSync(at("new"), Buffer.alloc(32));
      renameSync(at("new"), at("big"));
    });
    // Replaced before it was opened, it is a whole file that did not change.
    await expect(replaced).rejects.toThrow(/big changed while it was hashed/);
  });
});

describe("names that are not UTF-8", () => {
  const LATIN = Buffer.from("caf\xe9.txt", "latin1");

  test("are attested and verified, in a directory and by themselves; others see U+FFFD", async () => {
    const path = join(folder, decodeName(LATIN));
    writeFileSync(onDisk(path), "coffee");
    const run = await attest(folder);
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("caf\\u{dce9}.txt: entry") });
    const receipt = JSON.parse(readFileSync(onDisk(`${path}.attestation.json`), "utf8"));
    expect(receipt.manifest.document.title).toBe("caf\uFFFD.txt");
    // As Node passes an argument of these bytes.
    expect(await verify(join(folder, "caf\uFFFD.txt"))).toMatchObject({ code: 0 });
    expect(await verify(folder)).toMatchObject({ code: 0 });
    rmSync(onDisk(`${path}.attestation.json`));
    expect(await attest(join(folder, "caf\uFFFD.txt"))).toMatchObject({ code: 0 });
    expect(existsSync(onDisk(`${path}.attestation.json`))).toBe(true);
  });

  test("stand for the same bytes again", () => {
    for (const bytes of [
      LATIN,
      Buffer.from("\xff\xfe/\xc3\x28", "latin1"),
      Buffer.from("naïve 😀"),
      Buffer.from([0xed, 0xb3, 0xa9]),
    ])
      expect(Buffer.from(onDisk(decodeName(bytes)))).toEqual(bytes);
  });

  test("are not guessed where several look alike", () => {
    for (const byte of ["\xe8", "\xe9"])
      writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(byte, "latin1")]), "");
    expect(fromArgument(join(folder, "\uFFFD"))).toBe(join(folder, "\uFFFD"));
  });
});
