/**
 * Exit codes of commands: 0 success, 1 failure, 2 a command line that cannot be read. A partial success is a failure.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import type { Finished } from "../service.js";
import { cairnlog } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const FINGERPRINT = `sha256:${"a".repeat(64)}`;
const KEY = ["--key", at("me.pem")];
const NEW_KEY = ["--new-key", at("new.pem")];
const OBJECT = at("object.json");
/** A port that `fetch` never connects to. */
const NOWHERE = ["--server", "http://127.0.0.1:10"];
writeFileSync(at("me.pem"), newSigner().privateKey);
writeFileSync(at("new.pem"), newSigner().privateKey);
writeFileSync(at("operator.pub.pem"), newSigner().publicKey);
writeFileSync(OBJECT, "{}");

type Part = string | readonly string[];
/** Actions against a service with only the required parts. An option and its value are one part. */
const ACTIONS: readonly (readonly [action: string, parts: readonly Part[]])[] = [
  ["export", [["--out", at("export")]]],
  ["register", [KEY, ["--pseudonym", "Ada"]]],
  ["login", [KEY]],
  ["succeed", [KEY, NEW_KEY]],
  ["revoke", ["--yes"]],
  ["endorse offer", [FINGERPRINT, ["--category", "human"], KEY]],
  ["endorse accept", ["1", KEY]],
  ["endorse withdraw", ["1", ["--note", "x"], KEY]],
  ["endorse revoke-acceptance", ["1", ["--note", "x"], KEY]],
  ["endorse alert", [FINGERPRINT, ["--reason", "x"], KEY]],
  ["endorse received", [FINGERPRINT]],
  ["endorse issued", [FINGERPRINT]],
  ["endorse alerts", [FINGERPRINT]],
  ["request", [FINGERPRINT, ["--type", "authorship"]]],
  ["respond", ["some-request", "decline"]],
  ["respond", ["some-request", "accept", ["--attestation", "x"]]],
  ["inbox list", []],
  ["inbox read", ["1"]],
  ["policy publish", [OBJECT, ["--otherwise", "hold"]]],
  ["policy show", [FINGERPRINT]],
  ["trust create", [OBJECT]],
  ["trust revoke", []],
  ["trust show", [FINGERPRINT]],
  ["trust list", []],
  ["trust standing", [FINGERPRINT]],
  ["trust graph", [FINGERPRINT]],
  ["keys list", []],
  ["keys show", [FINGERPRINT]],
  ["log search", []],
  ["log proof", ["0"]],
  ["log tail", []],
  ["log head", []],
  ["log consistency", ["1", "2"]],
  ["log checkpoint", []],
  ["log verify", []],
  ["composite compile", [OBJECT]],
  ["password set", [KEY, ["--password-file", OBJECT]]],
  ["account create", [KEY, ["--name", "Ada"], ["--email", "ada@example.org"], ["--label", "x"]]],
  ["account recover", [KEY, ["--name", "Ada"], ["--recovery-key-file", OBJECT], ["--label", "x"]]],
  ["account enroll", [KEY, NEW_KEY, ["--label", "x"]]],
  ["anchor status", []],
  ["anchor now", []],
  ["claim post", [OBJECT]],
  ["claim list", ["ab".repeat(16)]],
  ["webhook add", [["--url", "https://example.org"]]],
  ["webhook list", []],
  ["webhook remove", ["1"]],
];
/** Actions that take any number of arguments. */
const OPEN_ACTIONS: typeof ACTIONS = [
  ["attest", [OBJECT, KEY]],
  ["log show", ["1"]],
  ["composite assemble", [OBJECT, ["--title", "x"]]],
];
/** Actions that use the session if no key is given. */
const BY_SESSION =
  /^(revoke|request|respond|inbox|policy publish|trust (create|revoke)|anchor now|claim post|webhook)\b/;

/** The message about a missing argument that is no option with a value, by action. */
const WANTING: Readonly<Record<string, string>> = {
  revoke: "nothing takes a revocation back: say --yes",
  "endorse offer": "the FINGERPRINT to endorse is missing",
  ...Object.fromEntries(
    ["accept", "withdraw", "revoke-acceptance"].map((name) => [`endorse ${name}`, "OFFER is missing"]),
  ),
  ...Object.fromEntries(
    ["endorse alert", "endorse received", "endorse issued", "endorse alerts", "policy show", "keys show"]
      .concat(["trust show", "trust standing", "trust graph"])
      .map((action) => [action, "FINGERPRINT is missing"]),
  ),
  request: "name one FINGERPRINT to ask",
  respond: "name one REQUEST, and accept or decline",
  "inbox read": "ID is missing",
  "policy publish": "PREDICATES.json is missing",
  "trust create": "CONFIG.json is missing",
  "log show": "name at least one ENTRY",
  "log proof": "LEAF must be a whole number",
  "log consistency": "TO must be a whole number",
  "composite compile": "COMPOSITE.json is missing",
  "composite assemble": "name at least one FILE",
  "claim post": "CLAIM.json is missing",
  "claim list": "LOOKUP_KEY is missing",
  "webhook remove": "ID is missing",
  attest: "name at least one FILE",
};

/** Exit code and sentence of a command line that fails: nothing on stdout, no stack trace. */
function expectFailure({ code, stdout, stderr }: Finished, exitCode: number, sentence: RegExp): void {
  expect({ code, stdout }, stderr).toEqual({ code: exitCode, stdout: "" });
  expect(stderr).toMatch(/^cairnlog: /);
  expect(stderr).toMatch(sentence);
  expect(stderr).not.toMatch(/\n\s+at /);
  expect(/\nTry: cairnlog .*--help\n$/.test(stderr)).toBe(exitCode === 2);
}

describe.each([...ACTIONS, ...OPEN_ACTIONS])("%s %j", (action, parts) => {
  const words = action.split(" ");
  const key = BY_SESSION.test(action) ? KEY : [];
  const line = (given: readonly Part[]) => [...words, ...given.flat(), ...key];

  test("1: no service answers", async () => {
    expectFailure(await cairnlog([...line(parts), ...NOWHERE]), 1, /^cairnlog: No service answers at http:\S+\. /);
  });

  test("2: without the address of a service, or with an invalid one", async () => {
    expectFailure(
      await cairnlog(line(parts)),
      2,
      /^cairnlog: --server is missing \("cairnlog config set server URL" remembers one\)\n/,
    );
    for (const address of ["nowhere", "http://", "xhttp://log.example"])
      expectFailure(await cairnlog([...line(parts), "--server", address]), 2, /: --server must be an address such as /);
  });

  // Some have none.
  test.each(parts.map((part) => [part] as const))("2: without the required %j", async (part) => {
    const rest = line(parts.filter((other) => other !== part));
    const sentence = typeof part === "string" ? WANTING[action] : `${part[0]} is missing`;
    expectFailure(await cairnlog([...rest, ...NOWHERE]), 2, new RegExp(`^cairnlog: ${sentence}\\n`));
  });
});

const FULL = ACTIONS.map(([action, parts]): (typeof ACTIONS)[number] => {
  return [action, action === "keys list" || action === "log search" ? ["Ada"] : parts];
});
test.each(FULL)("2: %s %j with one argument too many", async (action, parts) => {
  const args = [...action.split(" "), ...parts.flat(), "surplus", ...NOWHERE];
  expectFailure(await cairnlog(args), 2, /surplus|name one /);
});

test.each([
  ["endorse accept", ["first", ...KEY], "OFFER"],
  ["endorse withdraw", ["first", "--note", "x", ...KEY], "OFFER"],
  ["endorse revoke-acceptance", ["first", "--note", "x", ...KEY], "OFFER"],
  ["inbox read", ["first", ...KEY], "ID"],
  ["webhook remove", ["first", ...KEY], "ID"],
  ["trust graph", [FINGERPRINT, "--max-depth", "all"], "--max-depth"],
  ["log show", ["1", "first"], "ENTRY"],
  ["log search", ["--limit", "all"], "--limit"],
  ["log proof", ["first"], "LEAF"],
  ["log proof", ["0", "--tree-size", "all"], "--tree-size"],
  ["log head", ["--tree-size", "all"], "--tree-size"],
  ["log tail", ["--lines", "all"], "--lines"],
  ["log tail", ["--interval", "long"], "--interval"],
  ["log consistency", [], "FROM"],
  ["log consistency", ["first", "2"], "FROM"],
  ["log consistency", ["1", "last"], "TO"],
] as const)("2: %s %j, where a number is needed", async (action, args, name) => {
  const sentence = new RegExp(`^cairnlog: ${name} must be a whole number\n`);
  expectFailure(await cairnlog([...action.split(" "), ...args, ...NOWHERE]), 2, sentence);
});

describe("2: there is no such command", () => {
  test.each([
    ["constructor", "command"],
    ["toString", "command"],
    ["__proto__", "command"],
    ["-x", "option"],
    ["", "command"],
  ])("%j", async (name, what) => {
    const tried = await cairnlog([name]);
    expect(tried).toEqual({
      code: 2,
      stdout: "",
      stderr: `cairnlog: unknown ${what} '${name}'\nTry: cairnlog --help\n`,
    });
  });
});

test("2: without a command, which shows the overview", async () => {
  const { stdout } = await cairnlog(["--help"]);
  expect(stdout).toMatch(/^Usage: cairnlog COMMAND \[options\]\n/);
  expect(await cairnlog([])).toEqual({ code: 2, stdout, stderr: "" });
});

test("0: with -h in the place of --help", async () => {
  expect(await cairnlog(["-h"])).toEqual(await cairnlog(["--help"]));
  for (const args of [["keygen"], ["log"], ["log", "tail"], ["revoke", "--yes"]]) {
    const told = await cairnlog([...args, "-h"]);
    expect(told).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(`^Usage: cairnlog ${args[0]} `) });
    expect(told).toEqual(await cairnlog([...args, "--help"]));
  }
});
