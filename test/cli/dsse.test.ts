/** `cairnlog attest --dsse` and `verify --dsse`: an envelope of a build system on the log, and offline against its key. */
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestService, type TestService } from "../server/harness.js";
import { scratchFolder } from "../service.js";
import { envelopeOf, STATEMENT } from "../verify/dsse/envelopes.js";
import { cairnlog } from "./harness.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);
const builder = generateKeyPairSync("ec", { namedCurve: "P-256" });
const FILE = at("build.intoto.json");
let service: TestService;

const attest = (...args: string[]) => cairnlog(["attest", ...args, "--key", at("me.pem"), "--server", service.url]);
const verify = (...args: string[]) => cairnlog(["verify", ...args, "--operator-key", at("operator.pub.pem")]);

beforeAll(async () => {
  service = await startTestService();
  writeFileSync(at("operator.pub.pem"), (await service.get("/log/operator-key")).body.public_key);
  expect(await cairnlog(["keygen", "--out", at("me.pem")])).toMatchObject({ code: 0 });
  const pem = (pair: ReturnType<typeof generateKeyPairSync>) => pair.publicKey.export({ type: "spki", format: "pem" });
  writeFileSync(at("builder.pub.pem"), pem(builder) as string);
  writeFileSync(at("other.pub.pem"), pem(generateKeyPairSync("ed25519")) as string);
  writeFileSync(FILE, JSON.stringify(envelopeOf(STATEMENT, builder.privateKey)));
  const { code, stdout, stderr } = await attest(FILE, "--dsse", "--envelope-key", at("builder.pub.pem"), "--json");
  expect([code, stderr]).toEqual([0, ""]);
  expect(JSON.parse(stdout)).toMatchObject({ bundle: `${FILE}.attestation.json`, duplicate: false });
});

describe("an envelope", () => {
  test("is on the log under the predicate of its statement, as the hash of its payload", async () => {
    const { entry, manifest } = JSON.parse(readFileSync(`${FILE}.attestation.json`, "utf8"));
    expect(entry.event_type).toBe(STATEMENT.predicateType);
    expect(entry.payload).toMatchObject({
      attestation_type: STATEMENT.predicateType,
      document_title: "app-1.0.tar.gz",
      document_hash: manifest.document.content_hash,
    });
    expect(manifest.document.dsse.public_key).toBe(readFileSync(at("builder.pub.pem"), "utf8"));
  });

  test("holds with the key of who signed it, and without, and as another text with the same payload", async () => {
    for (const key of [[], ["--envelope-key", at("builder.pub.pem")]]) {
      const { code, stdout } = await verify(FILE, "--dsse", ...key);
      expect([code, stdout]).toEqual([
        0,
        expect.stringMatching(/: verified[\s\S]* {2}ok {5}envelope: The envelope is signed by sha256:/),
      ]);
    }
    const reordered = at("reordered.json");
    const { signatures, payload, payloadType } = JSON.parse(readFileSync(FILE, "utf8"));
    writeFileSync(reordered, JSON.stringify({ signatures, payloadType, payload }, null, 2));
    expect((await verify(reordered, "--dsse", "--attestation", `${FILE}.attestation.json`)).code).toBe(0);
  });

  test("does not hold with another key, payload or signature, nor as a file", async () => {
    const wrong = async (...args: string[]) => {
      const { code, stdout } = await verify(...args, "--attestation", `${FILE}.attestation.json`, "--json");
      expect(code).toBe(1);
      const { valid, checks } = JSON.parse(stdout);
      expect(valid).toBe(false);
      return checks.filter((check: { ok: boolean }) => !check.ok).map((check: { name: string }) => check.name);
    };
    expect(await wrong(FILE, "--dsse", "--envelope-key", at("other.pub.pem"))).toEqual(["envelope"]);
    expect(await wrong(FILE)).toEqual(["file"]);
    const changed = at("changed.json");
    const swap = async (envelope: unknown) => {
      writeFileSync(changed, JSON.stringify(envelope));
      return wrong(changed, "--dsse");
    };
    const other = envelopeOf({ ...STATEMENT, subject: [] }, builder.privateKey);
    expect(await swap(other)).toEqual(["file"]);
    const stranger = envelopeOf(STATEMENT, generateKeyPairSync("ed25519").privateKey);
    expect(await swap(stranger)).toEqual(["envelope"]);
    expect(await swap({ ...other, payload: "?" })).toEqual(["file", "envelope"]);
    writeFileSync(changed, "{");
    expect(await wrong(changed, "--dsse")).toEqual(["format"]);
    // What was attested as a file is no envelope.
    const plain = await attest(at("other.pub.pem"));
    expect(plain.code).toBe(0);
    const asFile = await verify(FILE, "--dsse", "--attestation", `${at("other.pub.pem")}.attestation.json`);
    expect([asFile.code, asFile.stdout]).toEqual([1, expect.stringContaining("this was attested as a file")]);
  });
});

test("what its key has not signed, and what is no envelope, is not attested", async () => {
  const count = await service.entryCount();
  const key = ["--envelope-key", at("builder.pub.pem")];
  const { code, stderr } = await attest(FILE, "--dsse", "--envelope-key", at("other.pub.pem"));
  expect([code, stderr]).toEqual([1, expect.stringContaining("has not signed this envelope")]);
  expect(await attest(at("me.pem"), "--dsse", ...key)).toMatchObject({ code: 1 });
  // The log takes https: predicates only.
  const odd = at("odd.json");
  writeFileSync(
    odd,
    JSON.stringify(envelopeOf({ ...STATEMENT, predicateType: "cosign.example/v1" }, builder.privateKey)),
  );
  expect((await attest(odd, "--dsse", ...key)).stderr).toContain("https: URL");
  for (const args of [
    [FILE, "--dsse"],
    [FILE, ...key],
    [FILE, FILE, "--dsse", ...key],
    [FILE, "--dsse", ...key, "--manifest"],
    [FILE, "--dsse", ...key, "--type", "authorship"],
  ])
    expect((await attest(...args)).code, args.join(" ")).toBe(2);
  for (const args of [
    [FILE, ...key],
    [FILE, "--dsse", "--composite"],
    [FILE, "--dsse", "--vkey", "x+00000000+AA=="],
  ])
    expect((await verify(...args)).code, args.join(" ")).toBe(2);
  expect(await service.entryCount()).toBe(count);
});
