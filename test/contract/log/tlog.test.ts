/**
 * The log as a C2SP transparency log, read over HTTP alone and checked by the definitions of tlog-tiles, tlog-checkpoint,
 * signed-note and RFC 6962, with node:crypto.
 */
import { createPublicKey, verify } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { readSettings } from "#cairnlog/server/index.js";
import {
  expectProblem,
  NO_FRONT_ENDS,
  type Reply,
  startTestService,
  type TestService,
  temporaryFolder,
} from "../../server/harness.js";
import { sha256 } from "../../server/signers.js";
import { hashOf, plainRoot } from "../../verify/tlog/plain-rfc6962.js";

const NAME = "log.example";
const FOREVER = "public, max-age=31536000, immutable";
const SPKI_ED25519 = Buffer.from("302a300506032b6570032100", "hex");
/** Two full tiles of leaves and a partial one. */
const SIZE = 700;

const read = (service: TestService, path: string) => service.send("GET", `/tlog/${path}`);

async function append(service: TestService, count: number): Promise<void> {
  const event = { event_type: "test.event", payload: {} };
  await service.server.registry.log.append(Array.from({ length: count }, () => event));
}

/** The newest checkpoint, once it has this size: root and signature lines, verified with the served key. */
async function checkpointOf(
  service: TestService,
  size: number,
): Promise<{ readonly origin: string; readonly root: Buffer }> {
  let reply: Reply | undefined;
  const shown = async () => {
    reply = await read(service, "checkpoint");
    return reply.text.split("\n")[1];
  };
  await expect.poll(shown, { interval: 20 }).toBe(String(size));
  expect(reply!.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(reply!.headers.get("cache-control")).toBe("no-cache");
  const [, text, origin, root, base64] = /^((\S+)\n\d+\n(\S+)\n)\n\u2014 \2 (\S+)\n$/.exec(reply!.text)!;
  const { bytes } = await read(service, "vkey");
  const [, name, id, key] = /^([^+]+)\+([0-9a-f]{8})\+(\S+)\n$/.exec(bytes.toString())!;
  const point = Buffer.from(key!, "base64").subarray(1);
  expect(Buffer.from(key!, "base64")[0]).toBe(1);
  expect(sha256(Buffer.concat([Buffer.from(`${name}\n\x01`), point])).slice(0, 8)).toBe(id);
  const signature = Buffer.from(base64!, "base64");
  expect(signature.toString("hex", 0, 4)).toBe(id);
  const spki = createPublicKey({ key: Buffer.concat([SPKI_ED25519, point]), format: "der", type: "spki" });
  expect(verify(null, Buffer.from(text!), spki, signature.subarray(4))).toBe(true);
  expect(name).toBe(origin);
  return { origin: origin!, root: Buffer.from(root!, "base64") };
}

const hashesIn = ({ bytes }: Reply) =>
  Array.from({ length: bytes.length / 32 }, (_, i) => bytes.subarray(32 * i, 32 * i + 32));

let service: TestService;
/** The data of the leaves, from the API. */
let entries: string[];
let leaves: Uint8Array[];
beforeAll(async () => {
  service = await startTestService({ SERVICE_LOG_NAME: NAME, SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  await append(service, SIZE);
  const pages = await Promise.all([1, 2, 3, 4].map((page) => service.get(`/log?per_page=200&page=${page}`)));
  entries = pages.flatMap(({ body }) => body.entries.map((entry: { entry_hash: string }) => entry.entry_hash));
  leaves = entries.map((entry) => hashOf(0, Buffer.from(entry)));
});

describe("a client that knows tlog-tiles alone", () => {
  test("finds the root of the checkpoint in the tiles, and the leaves in the bundles", async () => {
    const { origin, root } = await checkpointOf(service, SIZE);
    expect(origin).toBe("log.example/tlog");
    const tiles = await Promise.all(["000", "001", "002.p/188"].map((path) => read(service, `tile/0/${path}`)));
    const bundles = await Promise.all(["000", "001", "002.p/188"].map((path) => read(service, `tile/entries/${path}`)));
    for (const reply of [...tiles, ...bundles]) {
      expect(reply.status).toBe(200);
      expect(reply.headers.get("content-type")).toBe("application/octet-stream");
      expect(reply.headers.get("cache-control")).toBe(FOREVER);
      expect(reply.headers.get("access-control-allow-origin")).toBe("*");
    }
    const hashes = tiles.flatMap(hashesIn);
    expect(Buffer.from(plainRoot(hashes)).equals(root)).toBe(true);
    const data = Buffer.concat(bundles.map(({ bytes }) => bytes));
    const bundled: Buffer[] = [];
    for (let at = 0; at < data.length; at += 2 + data.readUInt16BE(at))
      bundled.push(data.subarray(at + 2, at + 2 + data.readUInt16BE(at)));
    expect(bundled.map(String)).toEqual(entries);
    expect(hashes.map((hash) => hash.toString("hex"))).toEqual(
      bundled.map((entry) => Buffer.from(hashOf(0, entry)).toString("hex")),
    );
    const above = await read(service, "tile/1/000.p/2");
    expect(hashesIn(above).map((hash) => hash.toString("hex"))).toEqual(
      [0, 1].map((tile) => Buffer.from(plainRoot(leaves.slice(256 * tile, 256 * (tile + 1)))).toString("hex")),
    );
  });

  test("still gets every partial tile of a tile that has become full", async () => {
    for (const width of [1, 2, 127, 255]) {
      const reply = await read(service, `tile/0/001.p/${width}`);
      expect(reply.bytes.equals(Buffer.concat(leaves.slice(256, 256 + width)))).toBe(true);
      expect((await read(service, `tile/entries/000.p/${width}`)).bytes).toHaveLength(66 * width);
    }
    expect((await read(service, "tile/1/000.p/1")).bytes).toHaveLength(32);
  });

  test.each([
    ...[
      "tile/0/003",
      "tile/0/002",
      "tile/0/002.p/189",
      "tile/1/000",
      "tile/1/000.p/3",
      "tile/1/001.p/1",
      "tile/2/000.p/1",
    ],
    ...["tile/63/000.p/1", "tile/entries/002", "tile/entries/002.p/189", "tile/entries/003.p/1", "tile/0/x001/000"],
    ...["tile/entries/x001/x000/000.p/1", "tile/0/x999/x999/999", "tile/0/x999/x999/999.p/255"],
  ])("is told that %s is not there yet", async (path) => {
    const reply = await read(service, path);
    expectProblem(reply, 404, "not-found");
    expect(reply.headers.get("cache-control")).toBe("no-store");
  });

  test.each([
    ...["tile", "tile/0", "tile/0/0", "tile/0/00", "tile/0/0000", "tile/0/x000", "tile/0/x000/000", "tile/0/000.p"],
    ...[
      "tile/0/000.p/0",
      "tile/0/000.p/256",
      "tile/0/000.p/01",
      "tile/0/000.p/x",
      "tile/00/000",
      "tile/64/000",
      "tile/-1/000",
    ],
    ...[
      "tile/0/000/000",
      "tile/entries/0",
      "tile/Entries/000",
      "tile/0/x000/x000/x000/000",
      "tile/%30/%",
      "checkpoint/",
      "vkey/x",
      "",
    ],
  ])("is told that there is no path %j", async (path) => {
    expectProblem(await read(service, path), 404, "not-found");
  });

  test("gets the same with HEAD, and 304 for what it has", async () => {
    for (const path of ["checkpoint", "vkey", "tile/0/000", "tile/entries/001"]) {
      const get = await read(service, path);
      const head = await service.send("HEAD", `/tlog/${path}`);
      expect(head.headers.get("content-length")).toBe(String(get.bytes.length));
      const etag = get.headers.get("etag")!;
      expect((await service.send("GET", `/tlog/${path}`, { headers: { "if-none-match": etag } })).status).toBe(304);
    }
  });
});

test("its key is in /readyz, and no checkpoint has the origin of the notes of tree version 2", async () => {
  const { vkey, status } = (await service.send("GET", "/readyz")).body;
  expect([status, `${vkey}\n`]).toEqual(["ok", (await read(service, "vkey")).text]);
  const other = (await service.get("/log/checkpoint")).text.split("\n")[0];
  expect(other).toBe(NAME);
  expect((await read(service, "checkpoint")).text.split("\n")[0]).not.toBe(other);
});

test("the checkpoint of an empty log is that of the empty tree", async () => {
  const empty = await startTestService(NO_FRONT_ENDS);
  const { root } = await checkpointOf(empty, 0);
  expect(root.toString("hex")).toBe(sha256(""));
  expectProblem(await read(empty, "tile/0/000.p/1"), 404, "not-found");
});

describe("the key", () => {
  test("is the operator's if that is Ed25519, and stays with a restart", async () => {
    const SERVICE_DATA_DIR = temporaryFolder();
    const first = await startTestService({ SERVICE_DATA_DIR, ...NO_FRONT_ENDS });
    const vkey = (await read(first, "vkey")).text;
    const point = createPublicKey(readFileSync(join(SERVICE_DATA_DIR, "operator.pub.pem"))).export({
      type: "spki",
      format: "der",
    });
    expect(Buffer.from(vkey.split("+").slice(2).join("+"), "base64").subarray(1).equals(point.subarray(-32))).toBe(
      true,
    );
    expect(existsSync(join(SERVICE_DATA_DIR, "tlog.pem"))).toBe(false);
    await first.close();
    expect((await read(await startTestService({ SERVICE_DATA_DIR, ...NO_FRONT_ENDS }), "vkey")).text).toBe(vkey);
  });

  test.each(["ecdsa-p256", "rsa-2048"] as const)(
    "is one of its own beside an operator key that is %s",
    async (algorithm) => {
      const SERVICE_DATA_DIR = temporaryFolder();
      writeFileSync(join(SERVICE_DATA_DIR, "operator.pem"), generatePrivateKey(algorithm), { mode: 0o600 });
      const settings = { SERVICE_DATA_DIR, SERVICE_CHECKPOINT_INTERVAL_S: "1" };
      const first = await startTestService(settings);
      await append(first, 3);
      await checkpointOf(first, 3);
      expect(statSync(join(SERVICE_DATA_DIR, "tlog.pem")).mode & 0o777).toBe(0o600);
      const [vkey, checkpoint] = [(await read(first, "vkey")).text, (await read(first, "checkpoint")).text];
      await first.close();
      const second = await startTestService({ ...settings, ...NO_FRONT_ENDS });
      expect((await read(second, "vkey")).text).toBe(vkey);
      expect((await read(second, "checkpoint")).text).toBe(checkpoint);
    },
  );

  test("that is put there as tlog.pem is used, and must be Ed25519", async () => {
    const SERVICE_DATA_DIR = temporaryFolder();
    const file = join(SERVICE_DATA_DIR, "tlog.pem");
    writeFileSync(file, generatePrivateKey("ecdsa-p256"), { mode: 0o600 });
    await expect(startTestService({ SERVICE_DATA_DIR })).rejects.toThrow(
      expect.objectContaining({ code: "invalid-key" }),
    );
    writeFileSync(file, generatePrivateKey("ed25519"), { mode: 0o600 });
    const started = await startTestService({ SERVICE_DATA_DIR, ...NO_FRONT_ENDS });
    const point = createPublicKey(readFileSync(file)).export({ type: "spki", format: "der" }).subarray(-32);
    expect((await read(started, "vkey")).text).toContain(Buffer.concat([Buffer.of(1), point]).toString("base64"));
    await checkpointOf(started, 0);
  });
});

describe("settings", () => {
  test("the origin is the log's name and /tlog, unless it is set", async () => {
    const names = { SERVICE_LOG_NAME: NAME, SERVICE_TLOG_ORIGIN: "log.example/cairn/tlog" };
    const set = await startTestService({ ...names, ...NO_FRONT_ENDS });
    expect((await checkpointOf(set, 0)).origin).toBe("log.example/cairn/tlog");
    const nameless = await startTestService(NO_FRONT_ENDS);
    expect((await checkpointOf(nameless, 0)).origin).toMatch(/^cairnlog\/[0-9a-f]{16}\/tlog$/);
  });

  test("an origin is no other checkpoint's, and a name that notes take", () => {
    expect(() => readSettings({ SERVICE_LOG_NAME: NAME, SERVICE_TLOG_ORIGIN: NAME })).toThrow("must differ");
    expect(() => readSettings({ SERVICE_TLOG_ORIGIN: "a b" })).toThrow("SERVICE_TLOG_ORIGIN must be");
    for (const value of ["0", "-1", "1.5", "86401"])
      expect(() => readSettings({ SERVICE_CHECKPOINT_INTERVAL_S: value })).toThrow(
        "SERVICE_CHECKPOINT_INTERVAL_S must be",
      );
  });
});

test("a service whose log lost entries that were published does not start", async () => {
  const SERVICE_DATA_DIR = temporaryFolder();
  const settings = { SERVICE_DATA_DIR, SERVICE_CHECKPOINT_INTERVAL_S: "1", ...NO_FRONT_ENDS };
  const first = await startTestService(settings);
  await append(first, 2);
  await checkpointOf(first, 2);
  await first.close();
  const other = temporaryFolder();
  writeFileSync(join(other, "tlog-checkpoint.txt"), readFileSync(join(SERVICE_DATA_DIR, "tlog-checkpoint.txt")));
  await expect(startTestService({ SERVICE_DATA_DIR: other })).rejects.toThrow(
    expect.objectContaining({ code: "corrupt-log" }),
  );
});
