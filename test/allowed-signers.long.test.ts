/** Lists of keys in ssh's form, against `ssh-keygen` as the other implementation: who may sign at which time. */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Writers } from "#cairnlog/engine/registry/writes/writes.js";
import { readAllowedSigners } from "#cairnlog/server/opening/allowed-signers.js";
import { scratchFolder } from "./service.js";

const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);
const zone = process.env.TZ;
const TYPES = ["ed25519", "ecdsa", "rsa"] as const;
const MESSAGE = "a message\n";

/** Local times differ from UTC. */
beforeAll(() => {
  process.env.TZ = "Asia/Tokyo";
  for (const type of TYPES) {
    execFileSync("ssh-keygen", ["-q", "-t", type, "-N", "", "-C", "a comment", "-f", at(type)]);
    writeFileSync(at(`${type}.txt`), MESSAGE);
    execFileSync("ssh-keygen", ["-q", "-Y", "sign", "-f", at(type), "-n", "cairnlog", at(`${type}.txt`)], {
      stdio: "pipe",
    });
  }
});
afterAll(() => {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
  folder.remove();
});

const publicKey = (type: string) => readFileSync(at(`${type}.pub`), "utf8").trim();

/** Whether ssh takes the signature of the key for one of `name` at a time, by a list. */
function ssh(list: string, type: string, name: string, time: string): boolean {
  writeFileSync(at("list"), list);
  const args = ["-Y", "verify", "-f", at("list"), "-I", name, "-n", "cairnlog", "-s", at(`${type}.txt.sig`)];
  return spawnSync("ssh-keygen", [...args, `-Overify-time=${time}`], { input: MESSAGE }).status === 0;
}

/** Whether the service lets the key write at that time, by the same list. A list that it refuses lets nobody. */
function service(list: string, type: string, time: string): boolean {
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(time)!.slice(1).map(Number);
  const [year, month, ...rest] = parts as [number, number, number, number, number, number];
  const now = Date.UTC(year, month - 1, ...rest) * 1000;
  try {
    const listed = readAllowedSigners(list, "list");
    const parts = { operator: "", activationDelaySeconds: 0, log: null as never };
    const writers = new Writers({ ...parts, anchors: [], clock: () => now, settings: { rule: "file", listed } });
    const [{ fingerprint }] = readAllowedSigners(`ada ${publicKey(type)}`, "key") as [{ fingerprint: string }];
    writers.check(fingerprint);
    return true;
  } catch {
    return false;
  }
}

/** Around midnight here and in UTC, and around noon. */
const TIMES = ["20231231145959Z", "20231231150000Z", "20231231235959Z", "20240101000000Z"];
TIMES.push("20240101120000Z", "20240101120001Z");

const OPTIONS = [
  "",
  'valid-after="20240101Z"',
  'valid-after="20240101"',
  'valid-before="20240101Z"',
  'valid-before="20240101"',
  'valid-after="202401011200Z"',
  'valid-after="20240101120000Z"',
  'valid-before="20240101120000Z"',
  'valid-after="20240101Z",valid-before="20240101120000Z"',
  'valid-before="20240101120000Z",valid-after="20240101Z"',
  'VALID-AFTER="20240101Z"',
  'namespaces="cairnlog"',
  'namespaces="git,cairnlog",valid-after="20240101Z"',
  'namespaces="git"',
  'namespaces="*"',
  'valid-after="20240101Z",valid-after="20230101Z"',
  'valid-before="20240101Z",valid-before="20250101Z"',
  'namespaces="git",namespaces="cairnlog"',
  'valid-after="20240101Z",valid-before="20230101Z"',
  'valid-after="20240101Z",valid-before="20240101Z"',
  'valid-after="20240101z"',
  'valid-after="20240101UTC"',
  'valid-after="20240101Z",',
  'valid-after="20240101Z"valid-before="20300101Z"',
  "valid-after=20240101Z",
  'valid-after=""',
  "valid-after",
  'valid-after="2024"',
  'valid-after="2024010112Z"',
  'valid-after="20241301Z"',
  'valid-after="20240132Z"',
  'valid-after="20240230Z"',
  'valid-after="20230229Z"',
  'valid-after="202401012400Z"',
  'valid-after="202401011260Z"',
  'valid-after="20240101115960Z"',
  'valid-after="19690101Z"',
  'valid-after=" 20240101Z"',
  "cert-authority",
  "no-touch-required",
  'valid-after="20240101Z",unknown="1"',
];

describe.each(OPTIONS)("the options %s", (options) => {
  test("hold at the same times", () => {
    const list = `ada ${options} ${publicKey("ed25519")}\n`;
    const theirs = TIMES.map((time) => `${time} ${ssh(list, "ed25519", "ada", time)}`);
    expect(TIMES.map((time) => `${time} ${service(list, "ed25519", time)}`)).toEqual(theirs);
  });
});

const NOW = "20240101120000Z";
const LINES: readonly (readonly [what: string, line: (key: string) => string])[] = [
  ["a comment", (key) => `ada ${key} more words`],
  ["a list of names", (key) => `bob,ada ${key}`],
  ["a quoted name", (key) => `"ada" ${key}`],
  ["tabs", (key) => `ada\t${key.replaceAll(" ", "\t")}`],
  ["spaces at its beginning and end", (key) => `  ada ${key}  `],
  ["a line behind comments and empty lines", (key) => `# nobody\n\n  # nobody\nada ${key}`],
  ["the end of a line as Windows writes it", (key) => `ada ${key}\r`],
  ["no name", (key) => key],
  ["no key", () => "ada"],
  ["half a key", (key) => `ada ${key.slice(0, 40)}`],
  ["another type", (key) => `ada ${key.replace(/^\S+/, "ssh-dss")}`],
  ["a comment in its place", (key) => `# ada ${key}`],
];

describe.each(TYPES)("a key of the type %s", (type) => {
  test.each(LINES)("%s", (_, line) => {
    const list = `${line(publicKey(type))}\n`;
    expect(service(list, type, NOW)).toBe(ssh(list, type, "ada", NOW));
  });
});
