/** Checkpoints, computed and checked here from the definitions of signed-note and tlog-checkpoint, with node:crypto. */
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { noteKeyId, parsePublicKey, verifyCheckpoint } from "#cairnlog/engine/verify/index.js";
import { readSettings } from "#cairnlog/server/index.js";
import { startControlled } from "../../server/controlled.js";
import { expectProblem, NO_FRONT_ENDS, startTestService, type TestService } from "../../server/harness.js";
import { newSigner, registration, sha256 } from "../../server/signers.js";

const NAME = "log.example/cairn";
const point = (key: KeyObject) => key.export({ type: "spki", format: "der" }).subarray(-32);
const pem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }).toString();

/** `— <name> <base64(key id ‖ signature)>` for a key id by the definition. */
function signatureLine(text: string, name: string, pair: { publicKey: KeyObject; privateKey: KeyObject }): string {
  const keyId = sha256(Buffer.concat([Buffer.from(`${name}\n\x01`), point(pair.publicKey)])).slice(0, 8);
  const signature = sign(null, Buffer.from(text), pair.privateKey);
  return `\u2014 ${name} ${Buffer.concat([Buffer.from(keyId, "hex"), signature]).toString("base64")}\n`;
}

describe("a service", () => {
  let service: TestService;
  let operatorPem: string;
  const append = (pseudonym: string) => service.post("/keys/register", registration(newSigner(), pseudonym));

  beforeAll(async () => {
    service = await startTestService({ SERVICE_LOG_NAME: NAME });
    operatorPem = (await service.get("/log/operator-key")).body.public_key;
    expectProblem(await service.get("/log/checkpoint"), 404, "not-found");
    await append("Alice");
  });

  test("gives its newest head as a note that is valid by definition", async () => {
    for (const size of [1, 2, 3]) {
      if (size > 1) await append(`Alice ${size}`);
      const reply = await service.get("/log/checkpoint");
      expect(reply.headers.get("content-type")).toBe("text/plain; charset=utf-8");
      const { body: head } = await service.get("/log/sth");
      const text = `${NAME}\n${size}\n${Buffer.from(head.root_hash, "hex").toString("base64")}\n`;
      const [, name, base64] = /\n\n\u2014 (\S+) (\S+)\n$/.exec(reply.text)!;
      expect(reply.text).toBe(`${text}\n\u2014 ${name} ${base64}\n`);
      expect(name).toBe(NAME);
      const bytes = Buffer.from(base64!, "base64");
      const key = createPublicKey(operatorPem);
      const keyId = sha256(Buffer.concat([Buffer.from(NAME), Buffer.from([0x0a, 0x01]), point(key)])).slice(0, 8);
      expect(bytes.toString("hex", 0, 4)).toBe(keyId);
      expect(verify(null, Buffer.from(text), key, bytes.subarray(4))).toBe(true);
      expect(await verifyCheckpoint(reply.text, parsePublicKey(operatorPem), NAME)).toEqual({
        origin: NAME,
        treeSize: size,
        rootHash: head.root_hash,
      });
    }
  });

  test("is named after its operator key when it has no name", async () => {
    const nameless = await startTestService(NO_FRONT_ENDS);
    await nameless.post("/keys/register", registration(newSigner()));
    const digits = nameless.server.operatorFingerprint.slice("sha256:".length, "sha256:".length + 16);
    expect((await nameless.get("/log/checkpoint")).text).toMatch(new RegExp(`^cairnlog/${digits}\n1\n`));
  });

  test.each(["a b", "a+b", "a\u00a0b", "a\u2028b", "a\u0085b", "a\tb", "a\nb", " "])("is not named %j", (name) => {
    expect(() => readSettings({ SERVICE_LOG_NAME: name })).toThrow("SERVICE_LOG_NAME must be");
  });
});

test("a size is signed once; a key that cannot sign is 503, and nothing of that is remembered", async () => {
  const controlled = await startControlled();
  const { service, registry } = controlled;
  const append = () => service.post("/keys/register", registration(newSigner()));
  await append();
  controlled.operatorAnswers = false;
  const refused = await service.get("/log/checkpoint");
  expectProblem(refused, 503, "signer-unavailable");
  controlled.operatorAnswers = true;
  const first = await service.get("/log/checkpoint");
  expect(first.status).toBe(200);
  controlled.operatorAnswers = false;
  expect((await service.get("/log/checkpoint")).text).toBe(first.text);
  controlled.operatorAnswers = true;
  await append();
  expect((await service.get("/log/checkpoint")).text.split("\n")[1]).toBe(`${registry.log.size}`);
});

test.each(["ecdsa-p256", "rsa-2048"] as const)("an operator key of type %s has no checkpoints", async (algorithm) => {
  const { service } = await startControlled(algorithm);
  await service.post("/keys/register", registration(newSigner()));
  const reply = await service.get("/log/checkpoint");
  expectProblem(reply, 404, "not-found");
  expect(reply.body.detail).toContain("Ed25519");
  const operator = parsePublicKey((await service.get("/log/operator-key")).body.public_key);
  expect(await verifyCheckpoint(`${NAME}\n1\n${Buffer.alloc(32).toString("base64")}\n\n`, operator, NAME)).toBeNull();
});

describe("the verifier", () => {
  const pair = generateKeyPairSync("ed25519");
  const witness = generateKeyPairSync("ed25519");
  const key = parsePublicKey(pem(pair.publicKey));
  const rootHash = sha256("root");
  const root = Buffer.from(rootHash, "hex").toString("base64");
  const text = `${NAME}\n12\n${root}\n`;
  const line = signatureLine(text, NAME, pair);
  const note = `${text}\n${line}`;
  const judge = (candidate: string) => verifyCheckpoint(candidate, key, NAME);
  const signed = (body: string) => `${body}\n${signatureLine(body, NAME, pair)}`;

  // Published signatures by these keys' owners, made with Go's golang.org/x/mod/sumdb/note.
  test.each([
    "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
  ])("gives the key id of the verifier key %s", (verifierKey) => {
    const [, name, keyId, base64] = /^([^+]+)\+([^+]+)\+(.+)$/.exec(verifierKey)!;
    const x = Buffer.from(base64!, "base64").subarray(1).toString("base64url");
    const published = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    expect(Buffer.from(noteKeyId(name!, parsePublicKey(pem(published)))).toString("hex")).toBe(keyId);
  });

  test("accepts the note, with lines of witnesses, with extension lines, and of every size", async () => {
    const checkpoint = { origin: NAME, treeSize: 12, rootHash };
    expect(await judge(note)).toEqual(checkpoint);
    const other = signatureLine(text, "witness.example", witness);
    const sameName = signatureLine(text, NAME, witness);
    expect(await judge(`${text}\n${other}${line}${sameName}`)).toEqual(checkpoint);
    expect(await judge(signed(`${text}more\n`))).toEqual(checkpoint);
    for (const size of ["0", "9007199254740991"])
      expect(await judge(signed(`${NAME}\n${size}\n${root}\n`))).toMatchObject({ treeSize: Number(size) });
  });

  test("refuses every note with one character changed, taken away or put in", async () => {
    for (let at = 0; at < note.length; at++) {
      const changed = note[at] === "A" ? "B" : "A";
      for (const candidate of [
        note.slice(0, at) + changed + note.slice(at + 1),
        note.slice(0, at) + note.slice(at + 1),
        `${note.slice(0, at)}A${note.slice(at)}`,
        note.slice(0, at),
      ])
        expect(await judge(candidate), JSON.stringify(candidate)).toBeNull();
    }
  });

  test.each([
    ["a plus sign in its name", "\u2014 odd+name AAAAAAAA\n"],
    ["white space in its name", "\u2014 an odd name AAAAAAAA\n"],
    ["no name", "\u2014  AAAAAAAA\n"],
    ["no base64", "\u2014 witness.example !\n"],
    ["too few bytes", "\u2014 witness.example AAAA\n"],
    ["nothing behind its name", "\u2014 witness.example\n"],
  ])("passes over a line of another signer that has %s", async (_, odd) => {
    const checkpoint = { origin: NAME, treeSize: 12, rootHash };
    for (const lines of [odd + line, line + odd]) expect(await judge(`${text}\n${lines}`)).toEqual(checkpoint);
    expect(await judge(`${text}\n${odd}`)).toBeNull();
    // A line that is not a signature line makes the note invalid.
    expect(await judge(`${text}\n${odd.slice(2)}${line}`)).toBeNull();
  });

  test("refuses another key, another name, and a note that only others signed", async () => {
    expect(await verifyCheckpoint(note, parsePublicKey(pem(witness.publicKey)), NAME)).toBeNull();
    expect(await verifyCheckpoint(note, key, "log.example/other")).toBeNull();
    expect(await judge(`${text}\n${signatureLine(text, NAME, witness)}`)).toBeNull();
    expect(await judge(`${text}\n${signatureLine(text, "log.example/other", pair)}`)).toBeNull();
    const foreign = `log.example/other\n12\n${root}\n`;
    expect(await judge(`${foreign}\n${signatureLine(foreign, NAME, pair)}`)).toBeNull();
  });

  test("refuses a note with an invalid line of the operator", async () => {
    expect(await judge(`${text}\n${line}${signatureLine("other\n", NAME, pair)}`)).toBeNull();
    expect(await judge(`${text}\n${line}${line}`)).not.toBeNull();
  });

  test.each([
    ["a size with a zero before it", `${NAME}\n012\n${root}\n`],
    ["a size with a sign", `${NAME}\n+12\n${root}\n`],
    ["a size beyond 2^53", `${NAME}\n9007199254740993\n${root}\n`],
    ["no size", `${NAME}\n\n${root}\n`],
    ["a short root", `${NAME}\n12\n${Buffer.alloc(31).toString("base64")}\n`],
    ["a root without padding", `${NAME}\n12\n${root.replace("=", "")}\n`],
    ["no root", `${NAME}\n12\n`],
    ["an empty extension line", `${NAME}\n12\n${root}\n\nmore\n`],
    ["a control character", `${NAME}\n12\n${root}\nmo\tre\n`],
    ["a carriage return", `${NAME}\r\n12\n${root}\n`],
  ])("refuses %s, signed though it is", async (_, body) => {
    expect(await judge(signed(body))).toBeNull();
  });

  test("limits its work, and accepts any bytes as a note", async () => {
    expect(await judge(`${text}\n${line.repeat(101)}`)).toBeNull();
    const many = signatureLine(text, "witness.example", witness).repeat(16);
    expect(await judge(`${text}\n${many}${line}`)).not.toBeNull();
    expect(await judge(signed(`${text}${"x".repeat(1 << 20)}\n`))).toBeNull();
    for (const value of ["", "\n", "\n\n", "\n\n\n", "\ud800\n\n", undefined, null, 7, {}])
      expect(await judge(value as string)).toBeNull();
  });
});
