/** Who may write, as people meet it: letting somebody in by commands, and a list that a running service reads again. */
import type { ChildProcess } from "node:child_process";
import { createPublicKey } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { scratchFolder, cairnlog as spawned, startService } from "../service.js";
import { cairnlog } from "./harness.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);

test("an operator lets somebody in: register, endorse, accept, and then attest", async () => {
  const service = await startService(at("data"), {
    SERVICE_WRITERS: "endorsed",
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
  });
  const run = async (key: string, ...args: string[]) =>
    cairnlog([...args, "--key", at(key), "--server", service.url, "--operator-key", at("data/operator.pub.pem")]);
  const operator = "data/operator.pem";
  for (const name of ["ada", "bob"]) {
    await cairnlog(["keygen", "--out", at(`${name}.pem`)]);
    const key = createPublicKey(readFileSync(at(`${name}.pem`)));
    writeFileSync(at(`${name}.pub.pem`), key.export({ type: "spki", format: "pem" }));
  }
  writeFileSync(at("a.txt"), "By Ada.");
  const before = await run("ada.pem", "attest", at("a.txt"));
  expect([before.code, before.stderr]).toEqual([1, expect.stringContaining("ask for an endorsement")]);
  const self = await run("ada.pem", "register", "--pseudonym", "Ada");
  expect([self.code, self.stderr]).toEqual([1, expect.stringContaining("Send your public key to the operator")]);

  const registered = await run(operator, "register", "--public-key", at("ada.pub.pem"), "--pseudonym", "Ada", "--json");
  expect(registered.code, registered.stderr).toBe(0);
  const { fingerprint } = JSON.parse(registered.stdout);
  const offer = await run(operator, "endorse", "offer", fingerprint, "--category", "human", "--json");
  expect(offer.code, offer.stderr).toBe(0);
  const accepted = await run("ada.pem", "endorse", "accept", `${JSON.parse(offer.stdout).id}`);
  expect(accepted.code, accepted.stderr).toBe(0);
  const after = await run("ada.pem", "attest", at("a.txt"));
  expect(after.code, after.stderr).toBe(0);
  // She lets nobody in.
  const other = await run("ada.pem", "register", "--public-key", at("bob.pub.pem"), "--pseudonym", "Bob");
  expect(other.code).toBe(1);

  const said = await cairnlog(["writers", "--server", service.url, "--json"]);
  expect(JSON.parse(said.stdout)).toEqual({
    rule: "endorsed",
    sentence: "Keys that the operator or another trust anchor of this log endorses may write to it.",
  });
  expect(await (await fetch(`${service.url}/readyz`)).json()).toMatchObject({ writers: { rule: "endorsed" } });
  expect(await (await fetch(service.url)).text()).toContain('<meta name="log-writers" content="Keys that the operator');
  expect(await service.stop()).toBe(0);
});

test("SIGHUP has it read the list again; a list that cannot be used is reported, and the old one stays", async () => {
  const key = async (name: string) => {
    const { stdout } = await cairnlog(["keygen", "--out", at(`${name}.pem`)]);
    return /sha256:[0-9a-f]{64}/.exec(stdout)![0];
  };
  const [first, second] = [await key("first"), await key("second")];
  writeFileSync(at("list"), `first ${first}\n`);
  // A new text each time: what has its receipt is not sent again.
  let texts = 0;
  const text = () => {
    writeFileSync(at("b.txt"), `Text ${++texts}.`);
    return at("b.txt");
  };
  const lines: string[] = [];
  const started = (child: ChildProcess) => child.stderr?.on("data", (data) => lines.push(`${data}`));
  const environment = { SERVICE_WRITERS: at("list"), LOG_LEVEL: "info" };
  const service = await startService(at("listed"), environment, { started, stderr: "pipe", hasParent: true });
  const said = (sentence: string) => expect.poll(() => lines.join("")).toContain(sentence);
  const attest = async (name: string) =>
    (await cairnlog(["attest", text(), "--key", at(`${name}.pem`), "--server", service.url])).code;
  expect([await attest("first"), await attest("second")]).toEqual([0, 1]);
  writeFileSync(at("list"), `first valid-before="20200101Z" ${first}\nsecond ${second}\n`);
  service.process.kill("SIGHUP");
  await said("SIGHUP: the list of those who may write was read again");
  expect([await attest("first"), await attest("second")]).toEqual([1, 0]);
  writeFileSync(at("list"), `first ${first}\nsecond certainly ${second}\n`);
  service.process.kill("SIGHUP");
  await said("SIGHUP: the new list of those who may write cannot be used, and the old one stays");
  expect(lines.join("")).toContain("list, line 2: the options certainly are not understood.");
  expect([await attest("first"), await attest("second")]).toEqual([1, 0]);
  expect(await service.stop()).toBe(0);

  const refused = await spawned(["serve"], { env: { ...process.env, ...environment, SERVICE_DATA_DIR: at("no") } });
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("list, line 2: the options certainly")]);
  const missing = { ...process.env, SERVICE_WRITERS: "endorse", SERVICE_DATA_DIR: at("no") };
  const none = await spawned(["serve"], { env: missing });
  expect([none.code, none.stderr]).toEqual([
    1,
    expect.stringMatching(/endorse cannot be read, and is none of everybody/),
  ]);
  expect(() => readFileSync(at("no/operator.pem"))).toThrow();
});
