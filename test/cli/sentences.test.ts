/** What the command says of files and keys that are not what they should be: sentences that say what to do. */

import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { chain } from "../log/history/entries.js";
import { cairnlog as runCairnlog, scratchFolder } from "../service.js";
import { cairnlog } from "./harness.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (...names: string[]) => join(folder.path, ...names);
const PORT = { PORT: "0", SERVICE_WORKERS: "1", LOG_LEVEL: "silent" };

beforeAll(async () => {
  await cairnlog(["keygen", "--out", at("me.pem")]);
  writeFileSync(at("report.txt"), "text");
  writeFileSync(at("report.txt.attestation.json"), "{}");
  const lines = chain([{}, {}, {}]).map((entry) => `${JSON.stringify(entry)}\n`);
  writeFileSync(at("history.ndjson"), lines.join(""));
  expect(await cairnlog(["import", at("history.ndjson"), "--data", at("imported")])).toMatchObject({ code: 0 });
  expect(await cairnlog(["backup", "--data", at("imported"), "--to", at("backup")])).toMatchObject({ code: 0 });
});

test("a private key where a public one is wanted: it says so, and that nothing was sent", async () => {
  const said = `${at("me.pem")} holds a private key; the public key is needed here`;
  for (const args of [
    ["verify", at("report.txt"), "--operator-key", at("me.pem")],
    ["log", "head", "--server", "http://127.0.0.1:10", "--operator-key", at("me.pem"), "--state", at("state")],
    ["monitor", "http://127.0.0.1:10", "--state", at("watch"), "--operator-key", at("me.pem"), "--once"],
  ]) {
    const { code, stderr } = await cairnlog(args);
    expect(stderr).toContain(said);
    expect(stderr).toContain("Nothing was sent.");
    expect(stderr).not.toContain("exposed");
    expect(code).toBe(1);
  }
});

test.each([
  ["attest", at("report.txt"), "--key", at("me.pem")],
  ["operator", "freeze", "--reason", "the end"],
  ["operator", "withhold", "1", "--reason", "an order"],
])("%s %s: --as takes an origin", async (...args) => {
  const { code, stderr } = await cairnlog([...args, "--server", "http://127.0.0.1:10", "--as", "operator.pem"]);
  expect(stderr).toContain("--as must be an origin such as https://log.example, not operator.pem");
  expect(code).toBe(2);
});

test("files that are missing, directories in their place", async () => {
  const verify = (...args: string[]) => cairnlog(["verify", at("report.txt"), "--operator-key", ...args]);
  expect((await verify(at("none.pem"))).stderr).toBe(`cairnlog: There is no file ${at("none.pem")} (ENOENT).\n`);
  expect((await verify(folder.path)).stderr).toBe("cairnlog: What is named is a directory, not a file (EISDIR).\n");
  expect((await verify(at("report.txt"))).stderr).toMatch(/report\.txt holds no public key: /);
  writeFileSync(at("in-the-way"), "");
  const blocked = await cairnlog(["import", at("history.ndjson"), "--data", at("in-the-way", "below")]);
  expect(blocked.stderr).toBe(
    `cairnlog: ${at("in-the-way", "below")} lies below a file, which is not a directory (ENOTDIR).\n`,
  );
});

test("a data directory that cannot be: the service says so and ends", async () => {
  const { code, stderr } = await cairnlog(["serve"], { ...PORT, SERVICE_DATA_DIR: "/proc/x" });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: "cairnlog: The data directory /proc/x cannot be written (ENOENT).\n",
  });
});

test("an imported log has its public key beside it, so that it can be served without the private one", async () => {
  expect(readdirSync(at("imported")).sort()).toEqual(["log", "operator.pem", "operator.pub.pem"]);
});

test("a restored log waits for its own key: no other is made, and backups need no option", async () => {
  const to = at("restored");
  expect(await cairnlog(["restore", at("backup"), "--to", to, "--may-fork"])).toMatchObject({ code: 0 });
  expect(readdirSync(to).sort()).toEqual(["log", "operator.pub.pem"]);
  const { code, stderr } = await cairnlog(["serve", "--data", to], PORT);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^cairnlog: There is a log in \S+, but not its operator key sha256:[0-9a-f]{64}: \S+operator\.pem does not exist\. Put the private key there, or name its file in SERVICE_OPERATOR_KEY\./,
  );
  expect(existsSync(join(to, "operator.pem"))).toBe(false);
  expect(await cairnlog(["backup", "--data", to, "--to", at("again")])).toMatchObject({ code: 0 });
  copyFileSync(at("imported", "operator.pem"), join(to, "operator.pem"));
  expect(await cairnlog(["fsck", "--data", to])).toMatchObject({ code: 0 });
});

test("a misspelt setting is refused with the right name; a strange one is named", async () => {
  const misspelt = await cairnlog(["serve"], { ...PORT, SERVICE_DATADIR: at("unused") });
  expect(misspelt.code).toBe(2);
  expect(misspelt.stderr).toBe(
    "cairnlog: SERVICE_DATADIR is not a setting. Is SERVICE_DATA_DIR meant?\nTry: cairnlog serve --help\n",
  );
  const strange = await cairnlog(["serve"], { ...PORT, SERVICE_DATA_DIR: "/proc/x", SERVICE_MESH_NAME: "blue" });
  expect(strange.stderr).toContain("cairnlog: SERVICE_MESH_NAME is not a setting, and has no effect\n");
});

test("a certificate that nobody trusts, another name, no TLS, a name that cannot be looked up", async () => {
  mkdirSync(at("tls"));
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", at("tls", "key")];
  execFileSync("openssl", ["req", "-x509", ...key, "-out", at("tls", "cert"), ...subject], { stdio: "pipe" });
  const pem = (name: string) => readFileSync(at("tls", name));
  const server = createServer({ key: pem("key"), cert: pem("cert") }, (_, response) => void response.end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const own = `https://localhost:${port}`;
    const sentence = `The certificate of ${own} is not signed by an authority that is trusted here (DEPTH_ZERO_SELF_SIGNED_CERT), so nothing was sent.`;
    const exported = await cairnlog(["export", "--server", own, "--out", at("none.ndjson")]);
    expect(exported.stderr).toContain(sentence);
    expect(exported.stderr).toContain("NODE_EXTRA_CA_CERTS");
    await expect(createClient({ server: own }).log.head()).rejects.toMatchObject({
      code: "no-answer",
      message: expect.stringContaining(sentence),
    });
    // In a process of its own, because Node reads the variable when it starts.
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: at("tls", "cert") };
    const other = await runCairnlog(["export", "--server", `https://127.0.0.1:${port}`, "--out", at("x")], { env });
    expect(other.stderr).toMatch(/certificate of \S+ is for another name \(ERR_TLS_CERT_ALTNAME_INVALID\)/);
  } finally {
    server.close();
    server.closeAllConnections();
  }
  const named = await cairnlog(["export", "--server", "http://no-such-host.invalid", "--out", at("none.ndjson")]);
  expect(named.stderr).toMatch(
    /The name in http:\/\/no-such-host\.invalid cannot be looked up \(E\w+\)\.|No service answers/,
  );
});
