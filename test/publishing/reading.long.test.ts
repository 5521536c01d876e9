/** Published files as the log of the client and of commands: everything is checked against the checkpoint. */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { beforeAll, describe, expect, test } from "vitest";
import { type Entry, rfc6962 } from "#cairnlog/engine/verify/index.js";
import { openStaticLog } from "#cairnlog/server/client/static/log.js";
import { cairnlog } from "../cli/harness.js";
import { asSigner, newClient } from "../client/clients.js";
import { temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, sha256 } from "../server/signers.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { LiveLog, listening } from "./logs.js";

const [ada, bob] = [newSigner(), newSigner()];
const content = "a report";
const document = `sha256:${sha256(content)}`;
const file = join(temporaryFolder(), "report.txt");
let folder: string;
let vkey: string;
let entries: readonly Entry[];
const ids: number[] = [];
beforeAll(async () => {
  writeFileSync(file, content);
  const log = await LiveLog.start(100);
  const about = { ...newManifest(), document: { title: "A report", content_hash: document } };
  await log.register(ada, "Ada");
  ids.push(await log.attest(ada, about));
  await log.grow(290);
  ids.push(await log.attest(bob, about));
  await log.grow(400);
  for (let page = 1; page <= 2; page++)
    entries = [...(entries ?? []), ...(await log.service.get(`/log?page=${page}&per_page=200`)).body.entries];
  vkey = await log.vkey();
  folder = temporaryFolder();
  expect(await cairnlog(["publish", log.url, folder, "--entries"])).toMatchObject({ code: 0 });
});

/** A web server that knows ranges; notes what is asked for. */
const serve = (path: string, asked: string[] = []) =>
  listening(
    createServer((request, response) => {
      const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
      asked.push(`${request.url}${range ? ` ${range[0]}` : ""}`);
      readFile(join(path, request.url!)).then(
        (bytes) =>
          range
            ? response.writeHead(206).end(bytes.subarray(Number(range[1]), Number(range[2]) + 1))
            : response.end(bytes),
        () => response.writeHead(404).end(),
      );
    }),
  );

async function all<T>(found: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const one of found) list.push(one);
  return list;
}

test.each([400, 405, 512, 5_000, -1, 0.5, Number.NaN, 2 ** 53, "1", undefined])(
  "there is no leaf %s, and the publisher is not to blame",
  async (leaf) => {
    const log = await openStaticLog({ log: await serve(folder), trusted: vkey });
    const asked = [log.at(leaf as number), log.bundle(leaf as number), log.inclusion(leaf as number)];
    const codes = (await Promise.allSettled(asked)).map((ended) => ended.status === "rejected" && ended.reason.code);
    expect(codes).toEqual(["not-found", "not-found", "invalid-input"]);
  },
);

test("the client reads entries, proofs, documents and keys from a web server", async () => {
  const asked: string[] = [];
  const log = await openStaticLog({ log: await serve(folder, asked), trusted: vkey });
  expect((await all(log.entries())).map(({ entry }) => entry)).toEqual(entries);
  const last = entries.at(-1)!;
  for (const id of [1, 256, 257, last.id])
    expect(await log.entry(id)).toEqual({ entry: entries[id - 1], leafIndex: id - 1 });
  for (const id of [0, 401, 1000]) await expect(log.entry(id)).rejects.toMatchObject({ code: "not-found" });
  asked.length = 0;
  const signed = await all(log.about(document));
  expect(signed.map(({ entry }) => entry.id)).toEqual(ids);
  expect(asked).toEqual(["/index/0-256/fence", "/index/0-256/0 bytes=0-79"]);
  const [registered] = await all(log.about(ada.fingerprint));
  expect(registered!.entry.payload!.pseudonym).toBe("Ada");
  for (const { entry, leafIndex } of signed) {
    const claim = {
      leafHash: rfc6962.leafHash(Buffer.from(entry.entry_hash)),
      ...{ leafIndex, treeSize: 400, proof: await log.inclusion(leafIndex) },
      rootHash: Buffer.from(log.verdict.checkpoint.rootHash, "hex"),
    };
    expect(rfc6962.verifyInclusion(claim)).toBe(true);
  }
  const proof = join(temporaryFolder(), "report.tlog-proof");
  writeFileSync(proof, await log.proofFile(signed[0]!));
  expect(await cairnlog(["verify", file, "--proof", proof, "--vkey", vkey])).toMatchObject({ code: 0 });
});

test("a file that could not be read once is asked for again by the next call", async () => {
  const failing = new Set<string>();
  const url = await listening(
    createServer((request, response) => {
      const path = request.url!;
      if (failing.delete(path)) response.writeHead(503).end();
      else
        readFile(join(folder, path)).then(
          (bytes) => response.end(bytes),
          () => response.writeHead(404).end(),
        );
    }),
  );
  for (const path of ["/entries/000", "/index/0-256/fence"]) {
    const log = await openStaticLog({ log: url, trusted: vkey });
    failing.add(path);
    await expect(all(log.about(document)), path).rejects.toThrow();
    expect((await all(log.about(document))).map(({ entry }) => entry.id)).toEqual(ids);
  }
});

const verify = (log: string, ...more: string[]) => cairnlog(["verify", file, "--log", log, "--vkey", vkey, ...more]);

test("cairnlog verify says who signed a file, from a folder and from a web server", async () => {
  for (const place of [folder, await serve(folder)]) {
    const { code, stdout, stderr } = await verify(place);
    expect([code, stderr]).toEqual([0, ""]);
    for (const text of [ada.fingerprint, bob.fingerprint, "“Ada”", `entry number ${ids[0]}; leaf ${ids[0]! - 1}`])
      expect(stdout).toContain(text);
  }
  const key = join(temporaryFolder(), "bob.pem");
  writeFileSync(key, bob.publicKey);
  const named = await verify(folder, "--signer", key, "--json");
  expect([named.code, JSON.parse(named.stdout)]).toEqual([
    0,
    expect.objectContaining({ valid: true, leaf_index: ids[1]! - 1, tree_size: 400 }),
  ]);
  writeFileSync(key, newSigner().publicKey);
  expect(await verify(folder, "--signer", key)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("The signer is none of those that you named."),
  });
  const other = join(temporaryFolder(), "other.txt");
  writeFileSync(other, "nobody signed this");
  expect(await cairnlog(["verify", other, "--log", folder, "--vkey", vkey])).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("No entry of the 400 is about this file, says the index."),
  });
});

test("a key is what the service says of it, as of the checkpoint", async () => {
  const own = await LiveLog.start(0);
  const [first, lost, next, plain] = [
    newClient(own.url.slice(0, -5)),
    newClient(own.url.slice(0, -5)),
    newSigner(),
    bob,
  ];
  const about = { title: "Notes", content_hash: document };
  for (const { client, signer } of [first, lost]) {
    // A stranger was faster.
    await own.register(signer, "Mallory");
    await client.keys.register({ pseudonym: "Countess" });
    await client.attest(about);
  }
  await own.register(plain, "Bob");
  await first.client.keys.succeed(asSigner(next), { pseudonym: "Heir" });
  await own.service.checkpointed(8);
  const target = temporaryFolder();
  expect(await cairnlog(["publish", own.url, target, "--entries"])).toMatchObject({ code: 0 });
  const trusted = await own.vkey();
  const url = await serve(target);
  const keyIn = async (fingerprint: string) => (await openStaticLog({ log: url, trusted })).key(fingerprint);
  const told = async (fingerprint: string) => {
    const { proven: _, ...key } = (await own.service.get(`/keys/${fingerprint}`)).body;
    return key;
  };
  for (const fingerprint of [first.fingerprint, lost.fingerprint, next.fingerprint, plain.fingerprint])
    expect(await keyIn(fingerprint)).toEqual(await told(fingerprint));
  expect((await keyIn(first.fingerprint))!.status).toBe("succeeded");
  // In lists, too: the name that the key has signed, and not that of whoever was faster.
  const listed = await cairnlog(["log", "search", document, "--log", target, "--vkey", trusted]);
  expect(listed.stdout.match(/“[^”]*”/g)).toEqual(["“Countess”", "“Countess”"]);
  expect(await keyIn(ada.fingerprint)).toBe(null);
  const statusOf = async () => {
    const options = ["verify", file, "--log", target, "--vkey", trusted];
    const [text, json] = [await cairnlog(options), await cairnlog([...options, "--json"])];
    expect([text.code, json.code]).toEqual([0, 0]);
    const { key } = JSON.parse(json.stdout.trimEnd().split("\n")[1]!);
    expect(text.stdout).toContain(`“Countess” is ${key.status} at this checkpoint`);
    return [key.fingerprint, key.status];
  };
  expect(await statusOf()).toEqual([lost.fingerprint, "active"]);
  await lost.client.keys.revoke();
  await own.service.checkpointed(9);
  expect(await statusOf()).toEqual([lost.fingerprint, "active"]);
  expect(await cairnlog(["publish", own.url, target])).toMatchObject({ code: 0 });
  expect(await statusOf()).toEqual([lost.fingerprint, "revoked"]);
  expect(await keyIn(lost.fingerprint)).toEqual(await told(lost.fingerprint));
});

test("cairnlog log reads them", async () => {
  const read = (...args: string[]) => cairnlog(["log", ...args, "--log", folder, "--vkey", vkey, "--json"]);
  const parsed = async (...args: string[]) => {
    const { code, stdout, stderr } = await read(...args);
    expect([code, stderr]).toEqual([0, ""]);
    return stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  };
  expect(await parsed("show", "1", "300")).toEqual([entries[0], entries[299]]);
  expect(await parsed("tail", "-n", "3")).toEqual(entries.slice(-3));
  expect((await parsed("search", document)).map(({ id }) => id)).toEqual(ids);
  expect(await parsed("proof", "7")).toEqual([expect.objectContaining({ leaf_index: 7, tree_size: 400 })]);
  expect(await parsed("checkpoint")).toEqual([expect.objectContaining({ treeSize: 400 })]);
  const table = await cairnlog(["log", "search", document, "--log", folder, "--vkey", vkey]);
  expect(table.stdout).toContain("“Ada”");
});

test.each([
  [["log", "search", "report"], "published files have an index of whole hashes alone"],
  [["log", "search", "--title", "report"], "published files cannot answer --title"],
  [["log", "tail", "--follow"], "published files cannot answer --follow"],
  [["log", "head"], "published files cannot answer cairnlog log head"],
  [["log", "consistency", "1", "2"], "published files cannot answer cairnlog log consistency"],
] as const)("%j needs a service, and that is said", async (args, sentence) => {
  const { code, stderr } = await cairnlog([...args, "--log", folder, "--vkey", vkey]);
  expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
});

describe("files that are not the log's", () => {
  const spoilt = (path: string, change: (bytes: Buffer) => Buffer | null) => {
    const copy = temporaryFolder();
    cpSync(folder, copy, { recursive: true });
    const bytes = change(readFileSync(join(copy, path)));
    if (bytes) writeFileSync(join(copy, path), bytes);
    else rmSync(join(copy, path));
    return copy;
  };
  const inText = (from: string, to: string) => (bytes: Buffer) =>
    gzipSync(gunzipSync(bytes).toString().replace(from, to));
  /** The entry of leaf 0 in place of every one. */
  const misled = (bytes: Buffer) => {
    for (let at = 32; at < bytes.length; at += 40) bytes.writeBigUInt64BE(0n, at);
    return bytes;
  };
  test.each([
    ["entries/000", inText('"A report"', '"Another"'), "Entry "],
    ["entries/000", inText(ada.fingerprint, bob.fingerprint), "Entry "],
    ["entries/000", (bytes: Buffer) => bytes.subarray(0, -9), "It is no bundle."],
    ["index/0-256/0", misled, "which it is not about"],
    ["index/0-256/fence", (bytes: Buffer) => bytes.subarray(1), "is no fence of an index"],
    ["tile/0/000", (bytes: Buffer) => Buffer.from(bytes.map((byte) => byte ^ 1)), "are not those of its checkpoint"],
    [
      "tile/0/001.p/144",
      (bytes: Buffer) => Buffer.from(bytes.map((byte) => byte ^ 1)),
      "are not those of its checkpoint",
    ],
    ["entries/001.p/144", () => null, "does not have all entries of its checkpoint"],
    ["index/0-256/fence", () => null, "does not have all entries of its checkpoint"],
    ["checkpoint", () => null, "does not have /checkpoint"],
    [
      "checkpoint",
      (bytes: Buffer) => Buffer.from(bytes.toString().replace("400", "401")),
      "is not signed by a log that you trust",
    ],
  ] as const)("%s", async (path, change, sentence) => {
    const { code, stderr, stdout } = await verify(spoilt(path, change));
    expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining(sentence)]);
  });

  test("a record of the index that is there twice, in any order, shows its entry once", async () => {
    const count = readFileSync(join(folder, "index/0-256/0")).length / 40;
    const twice = spoilt("index/0-256/0", (records) => {
      const parts = Array.from({ length: count }, (_, i) => records.subarray(40 * i, 40 * i + 40));
      const found = parts.findIndex((part) => part.toString("hex", 0, 32) === sha256(content));
      return Buffer.concat(parts.flatMap((part, i) => (i === found ? [part, part] : [part])));
    });
    const fence = join(twice, "index/0-256/fence");
    const bytes = readFileSync(fence);
    bytes.writeBigUInt64BE(BigInt(count + 1));
    writeFileSync(fence, bytes);
    const { code, stdout } = await verify(twice, "--json");
    const found = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).entry.id);
    expect([code, found]).toEqual([0, ids]);
  });

  test("of another log", async () => {
    const other = ["verify", file, "--log", folder, "--vkey", newNoteSigner("other.example").vkey];
    expect(await cairnlog(other)).toMatchObject({ code: 1, stderr: expect.stringContaining("that you trust") });
    const unpinned = await cairnlog(["verify", file, "--log", folder]);
    expect([unpinned.code, unpinned.stderr]).toEqual([
      2,
      expect.stringContaining("--log goes with --vkey or --policy"),
    ]);
  });
});
