/** `cairnlog verify`: by whom, of directories, with the proof of witnesses, and with what the service says of the key. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parsePublicKey } from "#cairnlog/engine/verify/index.js";
import { startTestService, type TestService } from "../server/harness.js";
import { scratchFolder } from "../service.js";
import { cairnlog } from "./harness.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);
const KEYS = {
  "ssh-ed25519": generateKeyPairSync("ed25519"),
  "ecdsa-sha2-nistp256": generateKeyPairSync("ec", { namedCurve: "P-256" }),
  "ssh-rsa": generateKeyPairSync("rsa", { modulusLength: 2048 }),
};
const STRANGER = generateKeyPairSync("ed25519").publicKey;
let service: TestService;
let vkey: string;

const pem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }) as string;
const fingerprint = (key: KeyObject) => parsePublicKey(pem(key)).fingerprint;
/** The key as ssh writes it: fields, each after its length. */
function ssh(type: keyof typeof KEYS, key: KeyObject): string {
  const { x, y, n, e } = key.export({ format: "jwk" });
  const bytes = (text: string | undefined) => Buffer.from(text!, "base64url");
  const mpint = (value: Buffer) => (value[0]! > 0x7f ? Buffer.concat([Buffer.of(0), value]) : value);
  const fields = {
    "ssh-ed25519": () => [bytes(x)],
    "ecdsa-sha2-nistp256": () => [Buffer.from("nistp256"), Buffer.concat([Buffer.of(4), bytes(x), bytes(y)])],
    "ssh-rsa": () => [mpint(bytes(e)), mpint(bytes(n))],
  }[type]();
  const packed = [Buffer.from(type), ...fields].flatMap((field) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(field.length);
    return [length, field];
  });
  return `${type} ${Buffer.concat(packed).toString("base64")}`;
}

const verify = (...args: string[]) => cairnlog(["verify", ...args, "--operator-key", at("operator.pub.pem")]);
const attest = (path: string, key: string, ...more: string[]) =>
  cairnlog(["attest", path, "--key", at(`${key}.pem`), "--server", service.url, ...more]);
let lists = 0;
const list = (...lines: string[]): string => {
  const path = at(`signers-${lists++}.txt`);
  writeFileSync(path, `# who may sign\n\n${lines.join("\n")}\n`);
  return path;
};

beforeAll(async () => {
  service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1", SERVICE_LOG_NAME: "log.example" });
  vkey = (await service.send("GET", "/tlog/vkey")).text.trim();
  writeFileSync(at("operator.pub.pem"), (await service.get("/log/operator-key")).body.public_key);
  for (const [type, { privateKey }] of Object.entries(KEYS)) {
    writeFileSync(at(`${type}.pem`), privateKey.export({ type: "pkcs8", format: "pem" }) as string, { mode: 0o600 });
    writeFileSync(at(`${type}.txt`), `By ${type}.`);
    expect((await attest(at(`${type}.txt`), type)).code).toBe(0);
  }
});

describe.each(Object.keys(KEYS) as (keyof typeof KEYS)[])("--signer, a key of %s", (type) => {
  const file = at(`${type}.txt`);
  const key = KEYS[type].publicKey;

  test("as fingerprint, as PEM, and in a list of allowed signers", async () => {
    writeFileSync(at("key.pub.pem"), pem(key));
    for (const who of [
      [fingerprint(key)],
      [at("key.pub.pem")],
      [fingerprint(STRANGER), at("key.pub.pem")],
      [list(`ada@example.org ${ssh(type, key)} a comment`)],
      [list(`bob ${ssh("ssh-ed25519", STRANGER)}`, `"ada@example.org" ${fingerprint(key)}`)],
      [list(`ada@example.org valid-after="20200101",valid-before="29990101Z" ${ssh(type, key)}`)],
      [list(`ada@example.org namespaces="git,cairnlog" ${ssh(type, key)}`)],
    ]) {
      const { code, stdout } = await verify(file, ...who.flatMap((one) => ["--signer", one]));
      expect([code, stdout], who[0]!).toEqual([0, expect.stringMatching(/ok {5}signer: The signer is /)]);
      if (who[0]!.includes("signers-")) expect(stdout).toContain("The signer is ada@example.org.");
      expect(stdout).not.toContain("name who must have signed");
    }
  });

  test("is refused when another is named, or at another time", async () => {
    for (const [who, reason] of [
      [fingerprint(STRANGER), "none of those"],
      [list(`ada ${ssh("ssh-ed25519", STRANGER)}`), "none of those"],
      [list(`ada valid-before="20200101" ${ssh(type, key)}`), "not allowed to sign at"],
      [list(`ada valid-after="29990101120000Z" ${ssh(type, key)}`), "not allowed to sign at"],
      [list(`ada namespaces="git" ${ssh(type, key)}`, `bob ${fingerprint(STRANGER)}`), "none of those"],
    ] as const) {
      const { code, stdout } = await verify(file, "--signer", who);
      expect([code, stdout]).toEqual([1, expect.stringMatching(new RegExp(`WRONG {2}signer: .*${reason}`))]);
    }
  });
});

test("without --signer the last line says that nobody was named", async () => {
  const { stdout } = await verify(at("ssh-rsa.txt"));
  const last = stdout.trimEnd().split("\n").slice(-2).join(" ");
  expect(last).toContain("name who must have signed by --signer");
  expect(last).toContain("revoked was not looked at");
});

test.each([
  ["no key", "ada", "names, options and a key"],
  ["a broken key", "ada ssh-ed25519 AAAA", "it has no key of the type ssh-ed25519"],
  ["a key under another type", `ada ssh-rsa ${ssh("ssh-ed25519", STRANGER).split(" ")[1]}`, "it has no key"],
  ["an unknown option", `ada no-touch-required ${ssh("ssh-ed25519", STRANGER)}`, "are not understood"],
  ["a time of another form", `ada valid-after="2020" ${ssh("ssh-ed25519", STRANGER)}`, "is no time of the form"],
  ["certificates", `ada cert-authority ${ssh("ssh-ed25519", STRANGER)}`, "certificates are not supported"],
  ["nobody", "# nobody", "names no signer"],
])("a list with %s is refused with its line", async (_, line, sentence) => {
  const { code, stderr } = await verify(at("ssh-rsa.txt"), "--signer", list(line));
  expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)]);
});

describe("a directory", () => {
  const papers = at("papers");
  beforeAll(async () => {
    mkdirSync(join(papers, "deep"), { recursive: true });
    for (const name of ["a.txt", "b.txt", "deep/c.txt"]) writeFileSync(join(papers, name), name);
    expect((await attest(papers, "ssh-ed25519")).code).toBe(0);
  });

  test("is one line a file, and a count; receipts are not taken for documents", async () => {
    const { code, stdout } = await verify(papers);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/a\.txt: verified: Signed by sha256:\w+\. As authorship, /);
    expect(lines[3]).toMatch(/^3 files verified\. Whose key it is/);
    const details = await verify(papers, "--details");
    expect(details.stdout.match(/ok {5}inclusion/g)).toHaveLength(3);
    const json = (await verify(papers, "--json")).stdout.trimEnd().split("\n");
    expect(json.map((line) => JSON.parse(line).who.fingerprint)).toEqual(
      Array(3).fill(fingerprint(KEYS["ssh-ed25519"].publicKey)),
    );
    // What a shell makes of papers/*.
    const names = ["a.txt", "a.txt.attestation.json", "b.txt", "b.txt.attestation.json"];
    expect((await verify(...names.map((name) => join(papers, name)))).code).toBe(0);
  });

  test.each([
    ["a receipt alone", ["a.txt.attestation.json"], 2, "a.txt.attestation.json is a receipt"],
    ["receipts alone", ["a.txt.attestation.json", "b.txt.attestation.json"], 2, "a.txt.attestation.json is a receipt"],
    ["a receipt whose document is not there", ["a.txt", "b.txt", "gone.txt.attestation.3.json"], 2, "gone.txt.attest"],
    ["proofs alone", ["a.txt.tlog-proof", "b.txt.tlog-proof"], 2, "a.txt.tlog-proof is a receipt"],
    ["a directory without files", ["none"], 1, "There is no file to verify."],
    ["one with a private key alone", ["keys"], 1, "There is no file to verify."],
  ])("is never said to hold where nothing is verified: %s", async (_, names, code, sentence) => {
    for (const name of ["none", "keys"]) mkdirSync(at(`bare/${name}`), { recursive: true });
    copyFileSync(at("ssh-ed25519.pem"), at("bare/keys/ada.pem"));
    const ran = await verify(...names.map((name) => join(name.includes(".") ? papers : at("bare"), name)));
    expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(sentence)]);
    expect(ran.stdout).toBe("");
  });

  test("with a file that was changed, and one that was never attested, says which", async () => {
    writeFileSync(join(papers, "b.txt"), "changed");
    writeFileSync(join(papers, "new.txt"), "new");
    const { code, stdout } = await verify(papers, "--signer", fingerprint(KEYS["ssh-ed25519"].publicKey));
    expect(code).toBe(1);
    expect(stdout).toMatch(/b\.txt: NOT verified: The file is not the one that was attested/);
    expect(stdout).toMatch(/new\.txt: NOT verified: There is no file/);
    expect(stdout).toMatch(/\n2 NOT verified of 4 files\./);
    expect(stdout).toMatch(/c\.txt: verified: The signer is one that you named\./);
  });
});

describe("a proof of witnesses", () => {
  const file = at("ssh-ed25519.txt");
  const proof = `${file}.tlog-proof`;
  const receipt = (...args: string[]) => cairnlog(["receipt", ...args, "--server", service.url]);
  const proven = (document: string, ...args: string[]) => verify(document, "--proof", proof, "--vkey", vkey, ...args);

  test("is made from the document, and tied to it", async () => {
    expect(await receipt(file, "--vkey", vkey)).toMatchObject({ code: 0, stdout: expect.stringContaining(proof) });
    const both = await proven(file, "--json");
    expect(both.code).toBe(0);
    expect(JSON.parse(both.stdout).witnessed_by).toEqual([]);
    expect((await proven(at("ssh-rsa.txt"))).stdout).toMatch(
      /WRONG {2}witnesses: The entry in the file has another hash/,
    );
    // Without the attestation file.
    const copy = at("copy.txt");
    writeFileSync(copy, readFileSync(file));
    const signer = ["--signer", fingerprint(KEYS["ssh-ed25519"].publicKey)];
    expect(await proven(copy, ...signer)).toMatchObject({ code: 0, stdout: expect.stringContaining("witnessed by") });
    expect((await proven(copy, "--signer", fingerprint(STRANGER))).stdout).toContain("none of those");
    writeFileSync(copy, "changed");
    expect((await proven(copy)).stdout).toContain("The proof is not about this document.");
    expect((await verify(file, "--proof", proof)).code).toBe(2);
  });

  test("is not made of another document, or of another log", async () => {
    const other = at("other.txt");
    writeFileSync(other, "other");
    expect((await receipt(other)).code).toBe(1);
    writeFileSync(`${other}.attestation.json`, readFileSync(`${file}.attestation.json`));
    expect((await receipt(other)).stderr).toContain("is not about this document");
    const bundle = JSON.parse(readFileSync(`${file}.attestation.json`, "utf8"));
    writeFileSync(other, readFileSync(file));
    const changed = { ...bundle, entry: { ...bundle.entry, id: 1 } };
    writeFileSync(`${other}.attestation.json`, JSON.stringify(changed));
    expect((await receipt(other)).stderr).toContain("is it another log?");
  });
});

test("the times of a list count in every way to check who signed, whatever spelling the entry's time has", async () => {
  const file = at("ssh-ed25519.txt");
  const copy = at("elsewhere.txt");
  const proof = at("elsewhere.tlog-proof");
  const respelled = at("respelled.tlog-proof");
  writeFileSync(copy, readFileSync(file));
  const id = JSON.parse(readFileSync(`${file}.attestation.json`, "utf8")).entry.id;
  expect((await cairnlog(["receipt", `${id}`, "--out", proof, "--server", service.url])).code).toBe(0);
  // Version 2 hashes the moment, and whoever passes the file on chooses how it is written.
  const respell = (time: string) =>
    `${new Date(Date.parse(time) - 14 * 3_600_000).toISOString().slice(0, 19)}${time.slice(19, -1)}-14:00`;
  const changed = (extra: string) => {
    const entry = JSON.parse(Buffer.from(extra, "base64").toString());
    return Buffer.from(JSON.stringify({ ...entry, timestamp: respell(entry.timestamp) })).toString("base64");
  };
  writeFileSync(
    respelled,
    readFileSync(proof, "utf8").replace(/^extra (.*)$/m, (_, extra) => `extra ${changed(extra)}`),
  );
  const published = at("published");
  expect(await cairnlog(["publish", `${service.url}/tlog`, published, "--entries"])).toMatchObject({ code: 0 });
  const ways = {
    receipt: () => [file, "--operator-key", at("operator.pub.pem")],
    proof: () => [copy, "--proof", proof, "--vkey", vkey],
    "proof, time respelled": () => [copy, "--proof", respelled, "--vkey", vkey],
    published: () => [copy, "--log", published, "--vkey", vkey],
  };
  const signed = Date.parse(JSON.parse(readFileSync(`${file}.attestation.json`, "utf8")).entry.timestamp);
  const moment = (ms: number) => new Date(ms).toISOString().replace(/\D/g, "").slice(0, 14);
  const key = fingerprint(KEYS["ssh-ed25519"].publicKey);
  for (const [name, args] of Object.entries(ways))
    for (const [times, code, words] of [
      [`valid-before="${moment(signed + 60_000)}Z"`, 0, ": verified"],
      [`valid-after="20200101Z"`, 0, ": verified"],
      [`valid-before="${moment(signed - 60_000)}Z"`, 1, "not allowed to sign at the entry's time"],
      [`valid-after="${moment(signed + 60_000)}Z"`, 1, "not allowed to sign at the entry's time"],
    ] as const) {
      const run = await cairnlog(["verify", ...args(), "--signer", list(`ada ${times} ${key}`)]);
      expect([name, times, run.code, run.stdout]).toEqual([name, times, code, expect.stringContaining(words)]);
    }
});

test("a file that is written meanwhile, or that is not there, is not verified, and all others are", async () => {
  const busy = at("busy");
  mkdirSync(busy);
  for (const name of ["a.txt", "z.txt"]) writeFileSync(join(busy, name), `${name} is not busy`);
  expect((await attest(busy, "ssh-ed25519")).code).toBe(0);
  const [growing, missing] = [join(busy, "growing.log"), join(busy, "missing")];
  writeFileSync(growing, Buffer.alloc(8 << 20));
  const files = [join(busy, "a.txt"), growing, missing, join(busy, "z.txt")];
  const published = at("published-busy");
  const { size } = service.server.registry.log;
  await service.checkpointed(size);
  expect(await cairnlog(["publish", `${service.url}/tlog`, published, "--entries"])).toMatchObject({ code: 0 });
  for (const args of [[busy], files]
    .map((paths) => [...paths, "--operator-key", at("operator.pub.pem")])
    .concat([[...files, "--log", published, "--vkey", vkey]])) {
    const writing = setInterval(() => appendFileSync(growing, "x"), 0);
    const { code, stdout } = await cairnlog(["verify", ...args]).finally(() => clearInterval(writing));
    expect(code).toBe(1);
    for (const name of ["a.txt", "z.txt"]) expect(stdout).toContain(`${join(busy, name)}: verified`);
    expect(stdout).toMatch(/growing\.log: NOT verified[\s\S]{0,150}changed while it was hashed/);
    if (args.includes(missing)) expect(stdout).toMatch(/missing: NOT verified[\s\S]{0,150}There is no file/);
  }
});

describe("--online", () => {
  const file = at("online.txt");
  const online = (...args: string[]) => verify(file, "--online", "--server", service.url, ...args);
  beforeAll(async () => {
    writeFileSync(file, "online");
    const { privateKey } = generateKeyPairSync("ed25519");
    writeFileSync(at("online.pem"), privateKey.export({ type: "pkcs8", format: "pem" }) as string, { mode: 0o600 });
    writeFileSync(at("online.pub.pem"), pem(createPublicKey(privateKey)));
    expect((await attest(file, "online")).code).toBe(0);
  });

  test("says the status of the key, and judges by a trust configuration", async () => {
    const { code, stdout } = await online("--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout).key_status).toMatch(/active/);
    const key = parsePublicKey(readFileSync(at("online.pub.pem"), "utf8")).fingerprint;
    const trusting = (anchor: string) => {
      const config = { direct_signer_anchors: [{ fingerprint: anchor, weight: 1 }], minimum_threshold: 0.5 };
      writeFileSync(at("trust.json"), JSON.stringify({ endorser_anchors: [], category_weights: {}, ...config }));
      return online("--trust", at("trust.json"));
    };
    expect(await trusting(key)).toMatchObject({ code: 0, stdout: expect.stringMatching(/ok {5}trust: /) });
    expect((await trusting(fingerprint(STRANGER))).stdout).toMatch(/trust: /);
    expect((await verify(file, "--trust", at("trust.json"))).code).toBe(2);
  });

  test("says that the key was revoked since", async () => {
    const { code } = await cairnlog(["revoke", "--yes", "--key", at("online.pem"), "--server", service.url]).catch(
      () => ({ code: 1 }),
    );
    expect(code).toBe(0);
    const { stdout } = await online();
    expect(stdout).toMatch(/key: Mind this: .*revoked/);
    expect((await verify(file)).stdout).toContain("revoked was not looked at");
  });

  test("a service that cannot be asked is no verdict", async () => {
    rmSync(at("gone"), { force: true });
    const { code, stdout } = await verify(file, "--online", "--server", "http://127.0.0.1:10");
    expect([code, stdout]).toEqual([1, ""]);
  });
});
