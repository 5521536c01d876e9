/** Hostile input: each request gets a clear 4xx, never 500, and never becomes an entry. */
import { connect } from "node:net";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { canonical, newManifest, newSigner, registration, sha256, submission } from "../../server/signers.js";

let service: TestService;
let before: number;
const signer = newSigner();

beforeAll(async () => {
  service = await startTestService();
});
beforeEach(async () => {
  before = await service.entryCount();
});
afterEach(async () => {
  expect(await service.entryCount()).toBe(before);
});

describe("POST /keys/register", () => {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const keys: [string, unknown, string][] = [
    ["no PEM", "ssh-ed25519 AAAA", "invalid-key"],
    ["nothing", "", "invalid-key"],
    ["a PEM of garbage", `-----BEGIN PUBLIC KEY-----\n${base64("garbage")}\n-----END PUBLIC KEY-----\n`, "invalid-key"],
    ["a PEM that is not base64", "-----BEGIN PUBLIC KEY-----\n????\n-----END PUBLIC KEY-----\n", "invalid-key"],
    ["a certificate", signer.publicKey.replaceAll("PUBLIC KEY", "CERTIFICATE"), "invalid-key"],
    ["two keys", newSigner().publicKey + newSigner().publicKey, "invalid-key"],
    ["a PEM with a NUL byte", signer.publicKey.replace("\n", "\n\0"), "invalid-key"],
    ["a private key", signer.privateKey, "private-key"],
    ["an RSA private key", newSigner("rsa-2048").privateKey, "private-key"],
    ["a private key before a public one", signer.privateKey + signer.publicKey, "private-key"],
    ["a number", 7, "invalid-input"],
    ["an array", [signer.publicKey], "invalid-input"],
  ];
  test.each(keys)("%s: 422", async (_, public_key, code) => {
    const reply = await service.post("/keys/register", registration(signer, "Mallory", { public_key }));
    expectProblem(reply, 422, code);
    expect(reply.text).not.toContain("MC4CAQAw");
  });

  const members: [string, Record<string, unknown>][] = [
    ["another algorithm than the key's", { key_algorithm: "ecdsa-p256" }],
    ["an unknown algorithm", { key_algorithm: "none" }],
    ["no pseudonym", { pseudonym: "" }],
    ["a pseudonym of 201 characters", { pseudonym: "x".repeat(201) }],
    ["a pseudonym with a NUL byte", { pseudonym: "a\0b" }],
    ["a pseudonym with a line break", { pseudonym: "a\nb" }],
    ["an expiration in the past", { expiration_date: "2001-01-01T00:00:00Z" }],
    ["an expiration that is none", { expiration_date: "tomorrow" }],
    ["an expiration on no day", { expiration_date: "2099-02-31T00:00:00Z" }],
    ["a numeric expiration", { expiration_date: 4102444800 }],
  ];
  test.each(members)("%s: 422", async (_, more) => {
    expectProblem(await service.post("/keys/register", registration(newSigner(), "Mallory", more)), 422);
  });
});

describe("POST /attestations", () => {
  const manifest = newManifest();
  const signature = signer.sign(canonical(manifest));
  const changed: [string, Record<string, unknown>][] = [
    ["no manifest", { manifest: undefined }],
    ["an array as manifest", { manifest: [] }],
    ["an empty manifest", { manifest: {} }],
    ["no attestations", { manifest: { document: manifest.document } }],
    ["attestations that are none", { manifest: { ...manifest, attestations: [1, null] } }],
    ["no title", { manifest: { document: { content_hash: manifest.document.content_hash }, attestations: [] } }],
    ["an empty title", { manifest: { ...manifest, document: { ...manifest.document, title: "" } } }],
    ["a hash that is none", { manifest: { ...manifest, document: { title: "T", content_hash: "sha256:zz" } } }],
    ["a public key that is none", { public_key_pem: "x" }],
    ["a private key", { public_key_pem: signer.privateKey }],
    ["another's public key", { public_key_pem: newSigner().publicKey }],
    ["no signature", { signature: "" }],
    ["a signature that is not base64", { signature: "%%%" }],
    ["base64url", { signature: signature.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "") }],
    ["a signature with a space", { signature: ` ${signature}` }],
    ["half a signature", { signature: Buffer.from(signature, "base64").subarray(0, 32).toString("base64") }],
    ["a signature of zeros", { signature: Buffer.alloc(64).toString("base64") }],
    ["a signature over something else", { signature: signer.sign("something else") }],
    ["a huge signature", { signature: "A".repeat(500_000) }],
    ["an unknown type", { attestation_type: "approval" }],
    ["a type that is no https: URL", { attestation_type: "http://example.org/p" }],
    ["a type with a NUL byte", { attestation_type: "https://example.org/\0" }],
    ["a numeric type", { attestation_type: 1 }],
    ["too long an intent", { intent_statement: "x".repeat(4097) }],
    ["a numeric pseudonym", { pseudonym: 1 }],
  ];
  test.each(changed)("%s: 422", async (_, more) => {
    const reply = await service.post("/attestations", { ...submission(signer, manifest), ...more });
    expectProblem(reply, 422);
  });

  test("duplicate members in the manifest: 422", async () => {
    const body = JSON.stringify(submission(signer, manifest)).replace('"title":', '"title":"Another","title":');
    expectProblem(await service.post("/attestations", body), 422, "not-i-json");
  });

  test("a manifest of many attestations cannot keep the service busy", async () => {
    const attestations = Array.from({ length: 5000 }, () => ({}));
    const started = Date.now();
    expectProblem(
      await service.post("/verify", { manifest: { ...manifest, attestations }, source_hash: sha256("") }),
      422,
    );
    expect(Date.now() - started).toBeLessThan(2_000);
  });
});

describe("bare connections", () => {
  const requests: [string, string | Buffer][] = [
    ["nothing like HTTP", "\x00\x01\x02\r\n\r\n"],
    ["a NUL byte in the path", "GET /api/v1/log/\0 HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["bytes beyond ASCII in the path", Buffer.from("GET /api/v1/log/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", "latin1")],
    ["a length that is none", "POST /api/v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"],
    [
      "two lengths (request smuggling)",
      "POST /api/v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "a chunk size that is none",
      "POST /api/v1/verify HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ["headers without end", `GET /api/v1/log HTTP/1.1\r\nHost: x\r\n${"A: b\r\n".repeat(20_000)}`],
    ["an invented method", "BREW /api/v1/log HTTP/1.1\r\nHost: x\r\n\r\n"],
  ];
  test.each(requests)("%s: refused, and the service goes on", async (_, bytes) => {
    const received = await service.raw(bytes, 500);
    if (received) expect(received).toMatch(/^HTTP\/1\.1 (4\d\d|505) /);
    expect((await service.get("/health")).status).toBe(200);
  });

  test("uploads that break off, at once or after a while, leave nothing", async () => {
    const body = JSON.stringify(registration(newSigner(), "Halfway"));
    const head = `POST /api/v1/keys/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`;
    for (const cut of [0, 1, body.length - 1])
      for (const wait of [0, 20])
        await new Promise<void>((resolve) => {
          const socket = connect(service.server.address.port, "127.0.0.1");
          socket.on("error", () => {}).on("close", () => resolve());
          socket.write(head + body.slice(0, cut));
          setTimeout(() => socket.resetAndDestroy(), wait);
        });
    expect((await service.get("/health")).status).toBe(200);
  });

  test("an upload byte by byte is an upload", async () => {
    const body = "not json";
    const socket = connect(service.server.address.port, "127.0.0.1");
    let received = "";
    socket.on("data", (data) => {
      received += data;
    });
    socket.write(`POST /api/v1/keys/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`);
    for (const byte of body) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      socket.write(byte);
    }
    while (!received.includes("malformed-json")) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    socket.destroy();
  });

  test("a client that leaves while its answer is made does no harm", async () => {
    for (let i = 0; i < 20; i++) {
      const socket = connect(service.server.address.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write("POST /api/v1/log/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
      setTimeout(() => socket.resetAndDestroy(), i % 4);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await service.get("/health")).status).toBe(200);
  });
});
