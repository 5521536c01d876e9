/** What commands find in a data directory and in files that name a published head, without a service of their own. */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { openOperatorKey, operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { OperatorKeys, parsePublicKey, type TreeHead } from "#cairnlog/engine/verify/index.js";
import { existingLog, operatorKeyOf } from "#cairnlog/server/cli/files/data-directory.js";
import { UsageError } from "#cairnlog/server/cli/line/usage.js";
import { putInPlace, readPrivateKey } from "#cairnlog/server/cli/operate/operator-log.js";
import { readPublished } from "#cairnlog/server/cli/operate/published.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, temporaryFolder } from "../server/harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const file = (name: string, content: string | object) => {
  writeFileSync(at(name), typeof content === "string" ? content : JSON.stringify(content));
  return at(name);
};
const operatorsOf = (dataDir: string) =>
  OperatorKeys.of(parsePublicKey(openOperatorKey(join(dataDir, "operator.pem")).public.pem));

describe("a published head", () => {
  let url: string;
  let head: TreeHead;
  let note: string;
  let operators: OperatorKeys;
  const tree = (source: string) => {
    const { tree_size, root_hash } = head;
    return { tree_size, root_hash, source };
  };
  beforeAll(async () => {
    const service = await startTestService({ SERVICE_DATA_DIR: at("data") });
    await service.server.registry.log.append([anyEvent(), anyEvent()]);
    url = service.url;
    head = (await service.get("/log/sth")).body;
    note = (await service.get("/log/checkpoint")).text;
    operators = operatorsOf(at("data"));
  });

  test("is read from a file in any of its forms", async () => {
    for (const content of [head, { sth: head }, { head }, { head, sth: head }, { sth: head, head: { tree_size: 7 } }])
      expect(await readPublished(file("head.json", content), operators)).toEqual(tree(at("head.json")));
    expect(await readPublished(file("head.json", `\n ${JSON.stringify(head)}\n`), operators)).toEqual(
      tree(at("head.json")),
    );
    expect(await readPublished(file("note", note), operators)).toEqual(tree(at("note")));
  });

  test("is asked for at an address, and only there", async () => {
    expect(await readPublished(url, operators)).toEqual(tree(url));
    mkdirSync(at("http:"));
    const inside = `${folder}/http://head.json`;
    writeFileSync(inside, JSON.stringify(head));
    expect(await readPublished(inside, operators)).toEqual(tree(inside));
  });

  test.each<[string, () => string, RegExp]>([
    ["text", () => "no head", /no checkpoint that is signed by/],
    ["an empty file", () => "", /no checkpoint that is signed by/],
    ["a note of another size", () => note.replace(/\n\d+\n/, "\n1\n"), /no checkpoint that is signed by/],
    ["broken JSON", () => "{", /is neither a tree head nor a checkpoint$/],
    ["an object that is none", () => "{}", /no tree head that is signed by/],
    ["a head of another size", () => JSON.stringify({ ...head, tree_size: 1 }), /no tree head that is signed by/],
  ])("is not %s", async (_, content, sentence) => {
    const source = file("none", content());
    const refusal = await readPublished(source, operators).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(UsageError);
    expect((refusal as Error).message).toMatch(sentence);
    expect((refusal as Error).message).toContain(source);
  });

  test("of another operator is none", async () => {
    const stranger = operatorKey(generatePrivateKey("ed25519")).public;
    const known = OperatorKeys.of(parsePublicKey(stranger.pem));
    for (const source of [file("head.json", head), file("note", note)])
      await expect(readPublished(source, known)).rejects.toThrow(`by the operator key ${stranger.fingerprint}`);
    await expect(readPublished(url, known)).rejects.toThrow(stranger.fingerprint);
  });

  test("may be signed by a later key of the log, if the service shows the way to it", async () => {
    const from = operatorKey(generatePrivateKey("ed25519"));
    const toPem = generatePrivateKey("ed25519");
    const to = operatorKey(toPem);
    const dataDir = at("rotated");
    mkdirSync(dataDir);
    const path = join(dataDir, "log");
    const log = await openLog({ path, signer: from, projection });
    await log.append(anyEvent());
    await log.close();
    await rotateOperatorKey({ path, from, to, projection });
    writeFileSync(join(dataDir, "operator.pem"), toPem, { mode: 0o600 });
    const service = await startTestService({ SERVICE_DATA_DIR: dataDir });
    const shown = (await service.get("/log/sth")).body;
    const known = OperatorKeys.of(parsePublicKey(from.public.pem));
    expect(await readPublished(service.url, known)).toMatchObject({ tree_size: 2, root_hash: shown.root_hash });
    // A file alone does not show it.
    await expect(readPublished(file("later.json", shown), known)).rejects.toThrow(from.fingerprint);
  });
});

describe("a data directory", () => {
  test("has a log if there are entries or what is left of their postings", () => {
    const dataDir = temporaryFolder();
    expect(() => existingLog(dataDir)).toThrow(new UsageError(`there is no log in ${dataDir}`));
    mkdirSync(join(dataDir, "log"));
    expect(() => existingLog(dataDir)).toThrow(UsageError);
    mkdirSync(join(dataDir, "log/postings"));
    expect(existingLog(dataDir)).toBe(join(dataDir, "log"));
    const other = temporaryFolder();
    mkdirSync(join(other, "log"));
    writeFileSync(join(other, "log/data.mdb"), "");
    expect(existingLog(other)).toBe(join(other, "log"));
  });

  test("names the operator key by the private or the public one, unless another file does", () => {
    const made = () => {
      const pem = generatePrivateKey("ed25519");
      const { fingerprint, pem: publicPem } = operatorKey(pem).public;
      return { pem, publicPem, fingerprint };
    };
    const [own, shown, third] = [made(), made(), made()];
    const dataDir = temporaryFolder();
    const fingerprint = (given?: string) => operatorKeyOf(dataDir, given)?.fingerprint;
    expect(fingerprint()).toBeUndefined();
    writeFileSync(join(dataDir, "operator.pub.pem"), shown.publicPem);
    expect(fingerprint()).toBe(shown.fingerprint);
    writeFileSync(join(dataDir, "operator.pem"), own.pem);
    expect(fingerprint()).toBe(own.fingerprint);
    for (const content of [third.pem, third.publicPem])
      expect(fingerprint(file("third", content))).toBe(third.fingerprint);
  });
});

describe("the file of an operator key", () => {
  test("that cannot be read is named", () => {
    expect(() => readPrivateKey(at("none.pem"))).toThrow(
      expect.objectContaining({
        code: "storage-failed",
        message: `The operator key ${at("none.pem")} cannot be read.`,
        cause: expect.objectContaining({ code: "ENOENT" }),
      }),
    );
  });

  test("holds the new key, and the old one is beside it, once", async () => {
    const dataDir = temporaryFolder();
    const oldPem = generatePrivateKey("ed25519");
    const old = operatorKey(oldPem);
    const place = join(dataDir, "operator.pem");
    const kept = join(dataDir, `operator.${old.fingerprint.slice(7, 23)}.pem`);
    writeFileSync(place, oldPem, { mode: 0o600 });
    writeFileSync(`${place}.new`, "left over");
    expect(await putInPlace(place, old, "new")).toBe(kept);
    expect(readFileSync(place, "utf8")).toBe("new");
    expect(readFileSync(kept, "utf8")).toBe(oldPem);
    expect(statSync(place).mode & 0o777).toBe(0o600);
    // As if the run had ended before the new one came.
    writeFileSync(place, oldPem);
    expect(await putInPlace(place, old, "new")).toBe(kept);
    expect(readdirSync(dataDir).sort()).toEqual([kept, place].map((path) => path.slice(dataDir.length + 1)).sort());
  });

  test("of a public key is not kept", async () => {
    const dataDir = temporaryFolder();
    writeFileSync(join(dataDir, "operator.pub.pem"), "old");
    expect(await putInPlace(join(dataDir, "operator.pub.pem"), null, "new")).toBeNull();
    expect(readdirSync(dataDir)).toEqual(["operator.pub.pem"]);
  });
});
