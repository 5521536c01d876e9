/** `cairnlog attest` with directories: every regular file in them, in few requests, whatever becomes of single ones. */
import fs, { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { namedFiles } from "#cairnlog/server/cli/files/files.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { cairnlog, pin } from "./harness.js";

const data = temporaryFolder();
const keyFile = join(temporaryFolder(), "me.pem");
let service: TestService;
beforeAll(async () => {
  service = await startTestService({ SERVICE_DATA_DIR: data });
  await pin(service.url);
  writeFileSync(keyFile, newSigner().privateKey);
});

/** Runs `work` as a user who may not read what is closed. */
function asNobody<T>(work: () => T): T {
  if (process.getuid!() !== 0) return work();
  process.seteuid!(65_534);
  try {
    return work();
  } finally {
    process.seteuid!(0);
  }
}

/** A directory with files of these names. */
function folderOf(...names: string[]): string {
  const folder = temporaryFolder();
  for (const name of names) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), `This is ${name} in ${folder}.`);
  }
  return folder;
}
const attest = (paths: readonly string[], more: readonly string[] = [], url = service.url) =>
  cairnlog(["attest", ...paths, "--key", keyFile, "--server", url, ...more]);
const verify = (files: readonly string[]) =>
  cairnlog(["verify", ...files, "--operator-key", join(data, "operator.pub.pem")]);
const lines = (text: string): string[] => text.trimEnd().split("\n");

describe("a directory", () => {
  test("is attested with all files in it and below, in the order of their paths; each receipt verifies offline", async () => {
    const folder = folderOf("b", "a/z", "a/b/c", "a.txt", "0");
    const files = ["0", "a.txt", "a/b/c", "a/z", "b"].map((name) => join(folder, name));
    const run = await attest([folder]);
    expect(run).toMatchObject({ code: 0, stderr: "Attesting 5 files.\n" });
    expect(lines(run.stdout).map((line) => line.split(": ")[0])).toEqual(files);
    const ids = lines(run.stdout).map((line) => Number(/: entry (\d+), /.exec(line)![1]));
    expect(ids).toEqual(ids.map((_, i) => ids[0]! + i));
    expect(await verify(files)).toMatchObject({ code: 0, stderr: "" });
    const { manifest } = JSON.parse(readFileSync(join(folder, "a/b/c.attestation.json"), "utf8"));
    expect(manifest.document).toMatchObject({ title: "c", attestation_type: "authorship", intent_statement: null });
  });

  test("is sent in one request", async () => {
    const proxy = await LyingProxy.before(service.url);
    await pin(proxy.url);
    const folder = folderOf(...Array.from({ length: 40 }, (_, i) => `file ${i}`));
    const asked: string[] = [];
    proxy.lie = (path, answer) => {
      asked.push(path.split("?")[0]!);
      return answer;
    };
    expect(await attest([folder], [], proxy.url)).toMatchObject({ code: 0 });
    expect(asked.filter((path) => path === "/attestations/batch")).toHaveLength(1);
    expect(asked.length).toBeLessThan(10);
  });

  test("can be attested again: receipts of the first run are not attested, and entries stay the same", async () => {
    const folder = folderOf("one", "two");
    writeFileSync(join(folder, "two.attestation.json.new"), "interrupted");
    const first = await attest([folder]);
    const again = await attest([folder, join(folder, "one")]);
    expect(again).toMatchObject({ code: 0, stderr: "Attesting 3 files.\n" });
    const recorded = lines(first.stdout).map((line) => line.replace(/,.*/, ""));
    expect(lines(again.stdout).map((line) => line.replace(/ \(recorded before\),.*/, ""))).toEqual([
      ...recorded,
      recorded[0],
    ]);
    // A file that is named itself is attested, whatever its name.
    expect(await attest([join(folder, "one.attestation.json")])).toMatchObject({ code: 0, stderr: "" });
  });

  test("leaves out what is no regular file", async () => {
    const folder = folderOf("real");
    symlinkSync(join(folder, "real"), join(folder, "link"));
    symlinkSync(folder, join(folder, "circle"));
    const run = await attest([folder]);
    expect(run).toMatchObject({ code: 0, stderr: "Attesting 1 file.\n" });
    expect(lines(run.stdout)).toHaveLength(1);
  });

  test("may be empty", async () => {
    expect(await attest([temporaryFolder()])).toEqual({ code: 0, stdout: "", stderr: "Attesting 0 files.\n" });
  });

  test("takes no title", async () => {
    const run = await attest([folderOf("one")], ["--title", "One"]);
    expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("--title goes with one FILE") });
  });
});

describe("a bad file among good ones: 1, and the good ones are attested", () => {
  test("one whose receipt cannot be kept, and directories that are not there", async () => {
    const folder = folderOf("after", "bad", "before");
    mkdirSync(join(folder, "bad.attestation.json"));
    const run = await attest([folder, join(folder, "none")]);
    expect(run.code).toBe(1);
    expect(lines(run.stdout).map((line) => line.split(": ")[0])).toEqual(
      ["after", "before"].map((name) => join(folder, name)),
    );
    expect(run.stderr).toMatch(
      /^Attesting 4 files\.\ncairnlog: .*bad\.attestation\.json is a directory, not a file \(EISDIR\)\. --out .*\ncairnlog: There is no file .*none \(ENOENT\)\.\n2 of 4 files are not attested\.\n$/,
    );
    expect(await verify([join(folder, "after"), join(folder, "before")])).toMatchObject({ code: 0 });
  });

  test("a directory that may not be read is reported, and the files beside it are found", () => {
    const folder = folderOf("a", "closed/file", "z");
    chmodSync(join(folder, "closed"), 0);
    chmodSync(folder, 0o755);
    const { files, failures } = asNobody(() => namedFiles([folder], { all: false, exclude: [] }));
    expect(files).toEqual(["a", "z"].map((name) => join(folder, name)));
    expect(failures.map(({ message }) => message)).toEqual([expect.stringMatching(/^EACCES.*closed'$/)]);
  });

  test("a directory that cannot be read is told on stderr, as text with --json, too", async () => {
    const folder = folderOf("a", "closed/file");
    const { readdirSync } = fs;
    const refuse = (path: string) => {
      if (path !== join(folder, "closed")) return;
      throw Object.assign(new Error(`EACCES: permission denied, scandir '${path}'`), {
        syscall: "scandir",
        code: "EACCES",
        path,
      });
    };
    fs.readdirSync = ((path: string, options: object) => refuse(path) ?? readdirSync(path, options)) as never;
    syncBuiltinESMExports();
    try {
      for (const more of [[], ["--json"]]) {
        const run = await attest([folder], more);
        expect(run).toMatchObject({
          code: 1,
          stderr: `Attesting 1 file.\ncairnlog: ${join(folder, "closed")} may not be used by this user (EACCES).\n`,
        });
        expect(lines(run.stdout)).toEqual([expect.stringContaining(join(folder, "a"))]);
      }
    } finally {
      fs.readdirSync = readdirSync;
      syncBuiltinESMExports();
    }
  });

  test("manifests that are none; --json has one line for each file", async () => {
    const folder = folderOf();
    const manifest = { document: { title: "A", content_hash: "ab".repeat(32) }, attestations: [] };
    writeFileSync(join(folder, "1.json"), JSON.stringify(manifest));
    writeFileSync(join(folder, "2.json"), "no JSON");
    writeFileSync(join(folder, "3.json"), JSON.stringify({ ...manifest, document: { title: "A", content_hash: "x" } }));
    writeFileSync(join(folder, "4.json"), JSON.stringify({ ...manifest, more: 1 }));
    const run = await attest([folder], ["--manifest", "--json"]);
    expect(run).toMatchObject({ code: 1, stderr: "Attesting 4 files.\n2 of 4 files are not attested.\n" });
    const answers = new Map(lines(run.stdout).map((line) => [JSON.parse(line).file, JSON.parse(line)]));
    const at = (n: number) => answers.get(join(folder, `${n}.json`));
    for (const n of [1, 4]) expect(at(n)).toMatchObject({ duplicate: false, log_entry_id: expect.any(Number) });
    expect(at(2)).toEqual({ file: expect.any(String), error: { code: "invalid-input", detail: expect.any(String) } });
    expect(at(3).error).toMatchObject({ code: "invalid-input", detail: expect.stringContaining("SHA-256") });
    expect([1, 2, 3, 4].map((n) => existsSync(join(folder, `${n}.json.attestation.json`)))).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  test("more than the limit allows: as many as it does, and how long the rest has to wait", async () => {
    const limited = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_ATTESTATION: "3" });
    await pin(limited.url);
    const folder = folderOf("a", "b", "c", "d", "e");
    const run = await attest([folder], [], limited.url);
    expect(run.code).toBe(1);
    expect(lines(run.stdout)).toHaveLength(3);
    expect(run.stderr).toMatch(
      /^Attesting 5 files\.\nThe service takes 3 attestations in 1 h .*\n2 of 5 files are not attested\.\ncairnlog: The limit "attestation" is used up\. Try again in \d+ seconds\.\n$/,
    );
  });
});
