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
const NOWHERE = ["--server", "http://127.0.0.1:9"];
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

/** The message about a missing argument. */
const WANTING = /is missing|name one|name at least one|must be a whole number|say what|say --yes/;

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
    expectFailure(await cairnlog(line(parts)), 2, /^cairnlog: --server is missing\n/);
    for (const address of ["nowhere", "http://", "xhttp://log.example"])
      expectFailure(await cairnlog([...line(parts), "--server", address]), 2, /: --server must be an address such as /);
  });

  test("2: without a required argument", async () => {
    for (const part of parts) {
      const rest = line(parts.filter((other) => other !== part));
      const sentence = typeof part === "string" ? WANTING : new RegExp(`^cairnlog: ${part[0]} is missing`);
      expectFailure(await cairnlog([...rest, ...NOWHERE]), 2, sentence);
    }
  });
});

const FULL = ACTIONS.map(([action, parts]): (typeof ACTIONS)[number] => {
  return [action, action === "keys list" || action === "log search" ? ["Ada"] : parts];
});
test.each(FULL)("2: %s %j with one argument too many", async (action, parts) => {
  const args = [...action.split(" "), ...parts.flat(), "surplus", ...NOWHERE];
  expectFailure(await cairnlog(args), 2, /surplus|name one /);
});
