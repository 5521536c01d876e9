/** The files of TLS, checked before a library gets them. The command's own answers are in `test/server/http/tls.long.test.ts`. */
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { checkTls } from "#cairnlog/server/http/transport/tls.js";
import { temporaryFolder } from "../../harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);

beforeAll(() => {
  for (const name of ["one", "other"]) {
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", at(`${name}.key`)];
    execFileSync("openssl", ["req", "-x509", ...key, "-out", at(`${name}.pem`), "-subj", "/CN=x", "-days", "9"], {
      stdio: "pipe",
    });
  }
  writeFileSync(at("text"), "neither\n");
  writeFileSync(at("cut.pem"), readFileSync(at("one.pem"), "utf8").slice(0, 200));
  writeFileSync(at("chain.pem"), readFileSync(at("one.pem"), "utf8") + readFileSync(at("other.pem"), "utf8"));
});

const check = (certificate: string, key: string) => checkTls({ certificate: at(certificate), key: at(key) });

test.each(["one.pem", "chain.pem"])("%s and its key serve until the first certificate expires", (name) => {
  const { validTo } = new X509Certificate(readFileSync(at("one.pem")));
  expect(check(name, "one.key")).toBe(Date.parse(validTo));
});

test.each([
  ["nothing.pem", "one.key", `SERVICE_TLS_CERT ${at("nothing.pem")} cannot be read.`],
  ["one.pem", "nothing.key", `SERVICE_TLS_KEY ${at("nothing.key")} cannot be read.`],
  ["text", "one.key", `SERVICE_TLS_CERT ${at("text")} is not a certificate in PEM.`],
  ["cut.pem", "one.key", `SERVICE_TLS_CERT ${at("cut.pem")} is not a certificate in PEM.`],
  ["one.key", "one.key", `SERVICE_TLS_CERT ${at("one.key")} is not a certificate in PEM.`],
  ["one.pem", "text", `SERVICE_TLS_KEY ${at("text")} is not a private key in PEM without a passphrase.`],
  ["one.pem", "one.pem", `SERVICE_TLS_KEY ${at("one.pem")} is not a private key in PEM without a passphrase.`],
  ["one.pem", "other.key", `SERVICE_TLS_KEY ${at("other.key")} is not the key of the certificate ${at("one.pem")}.`],
])("%s and %s: refused, with the library's own reason as the cause", (certificate, key, message) => {
  try {
    check(certificate, key);
  } catch (error) {
    expect(error).toBeInstanceOf(CairnlogError);
    expect(error).toMatchObject({ code: "precondition-failed", message, cause: expect.any(Error) });
    return;
  }
  expect.unreachable();
});
