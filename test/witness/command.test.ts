/** `cairnlog witness`: what each of its options changes. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { parseVkey } from "#cairnlog/engine/verify/index.js";
import { begin, cairnlog, interrupt } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { logsFile, NAME } from "./harness.js";
import { newTree } from "./logs.js";

const logs = logsFile([newTree("log.example/command"), newTree("log.example/second")]);

test("it listens where it is told, with the key that is named, and ends as told", async () => {
  const [data, keys] = [temporaryFolder(), temporaryFolder()];
  const key = join(keys, "key.pem");
  const named = ["--data", data, "--logs", logs, "--name", NAME, "--key", key, "--algorithm", "ml-dsa-44"];
  const run = begin(["witness", ...named, "--host", "localhost", "--port", "0", "--prefix", "/w/1", "--json"]);
  await run.prints(/\n/);
  const said = JSON.parse(run.stdout);
  expect(said).toEqual({
    url: expect.stringMatching(/^http:\/\/localhost:\d+\/w\/1$/),
    vkey: expect.any(String),
    logs: 2,
  });
  expect(parseVkey(said.vkey)).toMatchObject({ name: NAME, type: "subtree/v1" });
  expect(await (await fetch(`${said.url}/vkey`)).text()).toBe(`${said.vkey}\n`);
  expect([existsSync(key), existsSync(join(data, "witness.pem")), existsSync(join(data, "witness"))]).toEqual([
    ...[true, false, true],
  ]);
  await interrupt();
  expect(await run.ended).toMatchObject({ code: 0, stderr: "" });
});

test("with a certificate it speaks HTTPS, with that one, and with a new one after SIGHUP", async () => {
  const folder = temporaryFolder();
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => join(folder, name)) as [string, string];
  const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", key, "-out", cert];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const makeCertificate = () => execFileSync("openssl", ["req", "-x509", ...made, ...names], { stdio: "pipe" });
  makeCertificate();
  const named = ["--data", temporaryFolder(), "--logs", logs, "--name", NAME, "--host", "localhost", "--port", "0"];
  const run = begin(["witness", ...named, "--tls-cert", cert, "--tls-key", key, "--json"]);
  await run.prints(/\n/);
  const { url, vkey } = JSON.parse(run.stdout);
  expect(url).toMatch(/^https:/);
  /** The verifier key, from a service with this certificate. */
  const asked = (ca = readFileSync(cert)) =>
    new Promise((resolve, reject) => {
      const asking = request(`${url}/vkey`, { ca, agent: false }, (answer) => {
        text(answer).then(resolve, reject);
      });
      asking.on("error", reject).end();
    });
  expect(await asked()).toBe(`${vkey}\n`);
  makeCertificate();
  process.emit("SIGHUP");
  await expect.poll(() => asked().catch(() => null)).toBe(`${vkey}\n`);
  const newest = readFileSync(cert);
  writeFileSync(cert, "nonsense");
  process.emit("SIGHUP");
  expect(await asked(newest)).toBe(`${vkey}\n`);
  await interrupt();
  expect(await run.ended).toMatchObject({ code: 0 });
});

test("a certificate that cannot be used keeps it from starting, before anything is made", async () => {
  const data = join(temporaryFolder(), "none");
  const args = ["witness", "--data", data, "--logs", logs, "--name", NAME, "--port", "0"];
  const tls = ["--tls-cert", join(data, "no.pem"), "--tls-key", join(data, "no.key")];
  expect(await cairnlog([...args, ...tls])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/no\.pem cannot be read/),
  });
  expect(existsSync(data)).toBe(false);
  expect(await cairnlog([...args, ...tls.slice(0, 2)])).toMatchObject({ code: 2, stdout: "" });
});
