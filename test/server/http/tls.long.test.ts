/** TLS with two settings, with certificates made by openssl, tested with openssl and curl. */
import { type ChildProcess, execFile, execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cairnlog, type RunningService, scratchFolder, startService } from "../../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);
const run = promisify(execFile);

/** A certificate for localhost, signed by its own root: `name.pem`, `name.key`. */
function certificate(name: string, days = "30"): void {
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder.path, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"];
  openssl("req", "-x509", ...key, "-keyout", "root.key", "-out", "root.pem", "-subj", "/CN=Test Root", "-days", "30");
  const names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  openssl("req", ...key, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", "/CN=localhost", ...names);
  const signed = ["-CA", "root.pem", "-CAkey", "root.key", "-copy_extensions", "copy", "-days", days];
  openssl("x509", "-req", "-in", `${name}.csr`, "-out", `${name}.pem`, ...signed);
}

const tls = (certificate: string, key: string) => ({ SERVICE_TLS_CERT: at(certificate), SERVICE_TLS_KEY: at(key) });

beforeAll(() => {
  certificate("other");
  certificate("service");
});

test.each([
  ["the library that the service takes", ""],
  ["node:https", "node"],
])("over %s it speaks TLS 1.2 and 1.3, nothing older and nothing plain, and says https", async (_, transport) => {
  const environment = { ...tls("service.pem", "service.key"), SERVICE_TRANSPORT: transport };
  const service: RunningService = await startService(at(`data-${transport}`), environment);
  try {
    const { port, protocol } = new URL(service.url);
    expect(protocol).toBe("https:");
    const curl = (...args: string[]) => run("curl", ["-sS", "--cacert", at("root.pem"), ...args]);
    const { stdout } = await curl(`https://localhost:${port}/api/v1/health`);
    expect(JSON.parse(stdout)).toMatchObject({ status: "ok" });
    await expect(run("curl", ["-sS", `https://localhost:${port}/livez`])).rejects.toThrow(/certificate/);
    await expect(run("curl", ["-sS", `http://localhost:${port}/livez`])).rejects.toThrow();

    const sClient = (version: string) => {
      const args = [
        "s_client",
        "-connect",
        `127.0.0.1:${port}`,
        version,
        "-CAfile",
        at("root.pem"),
        "-verify_return_error",
      ];
      // Without input it ends on its own.
      return spawnSync("openssl", args, { input: "", encoding: "utf8" }).stdout;
    };
    expect(sClient("-tls1_2")).toContain("Verify return code: 0 (ok)");
    expect(sClient("-tls1_3")).toContain("Verification: OK");
    for (const version of ["-tls1", "-tls1_1"]) expect(sClient(version)).not.toMatch(/Cipher +: [A-Z]/);
    // A large body, so that it is sent in several records.
    writeFileSync(at("body.json"), JSON.stringify({ padding: "x".repeat(500_000) }));
    const { stdout: refusal } = await curl("-d", `@${at("body.json")}`, `https://localhost:${port}/api/v1/verify`);
    expect(JSON.parse(refusal)).toMatchObject({ status: 422 });
  } finally {
    expect(await service.stop()).toBe(0);
  }
});

test.each([
  ["a certificate that is not there", "nothing.pem", "service.key", /SERVICE_TLS_CERT .*nothing\.pem cannot be read/],
  ["a key that is not there", "service.pem", "nothing.key", /SERVICE_TLS_KEY .*nothing\.key cannot be read/],
  ["a key as certificate", "service.key", "service.key", /SERVICE_TLS_CERT .* is not a certificate in PEM/],
  ["a certificate as key", "service.pem", "service.pem", /SERVICE_TLS_KEY .* is not a private key in PEM/],
  ["another certificate's key", "service.pem", "other.key", /SERVICE_TLS_KEY .* is not the key of the certificate/],
])("%s: it does not start, and says why", async (_, pem, key, sentence) => {
  const env = { ...process.env, ...tls(pem, key), PORT: "0", SERVICE_DATA_DIR: at("unused") };
  const { code, stdout, stderr } = await cairnlog(["serve"], { env });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(sentence);
  expect(stderr).toMatch(/^cairnlog: .*\n$/);
});

test("one of the two settings alone is not understood", async () => {
  const env = { ...process.env, SERVICE_TLS_CERT: at("service.pem") };
  const { code, stderr } = await cairnlog(["serve"], { env });
  expect(code).toBe(2);
  expect(stderr).toContain("SERVICE_TLS_CERT and SERVICE_TLS_KEY must be given together.");
});

test("SIGHUP has it read the files again; without TLS, and for files that cannot be used, it says so and goes on", async () => {
  const lines: string[] = [];
  const started = (child: ChildProcess) => child.stderr?.on("data", (data) => lines.push(`${data}`));
  const said = (sentence: string) => expect.poll(() => lines.join("")).toContain(sentence);
  const plain = await startService(at("plain"), { LOG_LEVEL: "info" }, { started, stderr: "pipe" });
  plain.process.kill("SIGHUP");
  await said("SIGHUP: there is no certificate to read again");
  expect((await fetch(`${plain.url}/livez`)).status).toBe(200);
  expect(await plain.stop()).toBe(0);

  for (const end of ["pem", "key"]) copyFileSync(at(`other.${end}`), at(`renewed.${end}`));
  const list = (name: string) => writeFileSync(at("list"), `${name} sha256:${"a".repeat(64)}\n`);
  list("ada");
  const environment = { ...tls("renewed.pem", "renewed.key"), SERVICE_WRITERS: at("list"), LOG_LEVEL: "info" };
  const service = await startService(at("renewed"), environment, { started, stderr: "pipe" });
  const curl = () => run("curl", ["-sS", "--cacert", at("root.pem"), `${service.url}/livez`]);
  // Its root is not the one that signed the other certificates last.
  await expect(curl()).rejects.toThrow(/certificate/);
  for (const end of ["pem", "key"]) copyFileSync(at(`service.${end}`), at(`renewed.${end}`));
  service.process.kill("SIGHUP");
  await said("SIGHUP: certificate and key were read again");
  await said("SIGHUP: the list of those who may write was read again");
  expect(JSON.parse((await curl()).stdout)).toEqual({ status: "ok" });
  writeFileSync(at("renewed.key"), "nonsense");
  lines.length = 0;
  service.process.kill("SIGHUP");
  await said("SIGHUP: the new certificate cannot be used, and the old one stays");
  // One of both that cannot be used does not keep the other from being read.
  await said("SIGHUP: the list of those who may write was read again");
  expect(JSON.parse((await curl()).stdout)).toEqual({ status: "ok" });
  copyFileSync(at("service.key"), at("renewed.key"));
  writeFileSync(at("list"), "ada\n");
  lines.length = 0;
  service.process.kill("SIGHUP");
  await said("SIGHUP: certificate and key were read again");
  await said("SIGHUP: the new list of those who may write cannot be used, and the old one stays");
  expect(await service.stop()).toBe(0);
});
