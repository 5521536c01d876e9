/** The log over HTTP: everything served is recomputed here from the contract's definitions, with node:crypto. */
import { createPublicKey, verify } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { canonical, newManifest, newSigner, sha256, submission } from "../../server/signers.js";

type Version = 1 | 2;
const leaf = (digest: string, version: Version) => sha256((version === 2 ? "\0" : "") + digest);
const node = (left: string, right: string, version: Version) => sha256((version === 2 ? "\x01" : "") + left + right);

/** The root by the definition: level by level, with the last node doubled if it has no neighbour. */
function rootOf(digests: readonly string[], version: Version): string {
  let level = digests.map((digest) => leaf(digest, version));
  while (level.length > 1)
    level = Array.from({ length: Math.ceil(level.length / 2) }, (_, i) =>
      node(level[2 * i]!, level[2 * i + 1] ?? level[2 * i]!, version),
    );
  return level[0]!;
}

/** The root that an audit path gives. */
function climb(path: readonly string[], digest: string, leafIndex: number, treeSize: number, version: Version): string {
  const rest = [...path];
  let hash = leaf(digest, version);
  for (let index = leafIndex, width = treeSize; width > 1; index >>= 1, width = Math.ceil(width / 2)) {
    const isAlone = index % 2 === 0 && index + 1 === width;
    const sibling = isAlone ? hash : rest.shift()!;
    hash = index % 2 ? node(sibling, hash, version) : node(hash, sibling, version);
  }
  expect(rest).toEqual([]);
  return hash;
}

interface Served {
  id: number;
  timestamp: string;
  payload: unknown;
  previous_hash: string | null;
  entry_hash: string;
  entry_hashes: unknown;
  chain_version: number;
}

interface Head {
  tree_size: number;
  root_hash: string;
  timestamp: string;
  signature: string;
  key_id: string;
}

let service: TestService;
let entries: Served[];
let digests: string[];
let operatorKey: string;
const SIZE = 12;

function expectSigned(head: Head): void {
  const message = Buffer.from(`${head.root_hash}:${head.tree_size}:${head.timestamp}`);
  const signature = Buffer.from(head.signature, "base64");
  expect(verify(null, message, createPublicKey(operatorKey), signature)).toBe(true);
  expect(head.key_id).toBe(service.server.operatorFingerprint);
}

beforeAll(async () => {
  service = await startTestService();
  operatorKey = (await service.get("/log/operator-key")).body.public_key;
  expect((await service.get("/log")).body).toEqual({ entries: [], page: 1, per_page: 50, total: 0 });
  expectProblem(await service.get("/log/sth"), 404, "not-found");
  expectProblem(await service.get("/log/proof/0"), 404, "not-found");
  expectProblem(await service.get("/log/consistency?from=1"), 422, "invalid-input");
  expect((await service.post("/log/verify")).body).toEqual({ valid: true, entry_count: 0, errors: [], warnings: [] });
  // Each new signer makes two entries.
  for (let i = 0; i < SIZE / 2; i++) {
    const reply = await service.post("/attestations", submission(newSigner(), newManifest(`Ünï ${i} \u2028`)));
    expect(reply.status, reply.text).toBe(200);
  }
  entries = (await service.get("/log")).body.entries;
  digests = entries.map((entry) => entry.entry_hash);
});

describe("entries", () => {
  test("are served in order, linked, and with the right hashes", () => {
    expect(entries.map(({ id }) => id)).toEqual(Array.from({ length: SIZE }, (_, i) => i + 1));
    entries.forEach(({ timestamp, payload, previous_hash, entry_hash, entry_hashes, chain_version }, i) => {
      expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
      expect(chain_version).toBe(2);
      expect(previous_hash).toBe(digests[i - 1] ?? null);
      expect(entry_hash).toBe(sha256(`service.log.entry.v2\0${canonical({ payload, previous_hash, timestamp })}`));
      expect(entry_hashes).toEqual([{ algorithm: "sha2-256", digest_hex: entry_hash, is_primary: true }]);
    });
  });

  test("have the same bytes alone and in a list", async () => {
    const list = await service.get("/log?per_page=200");
    const alone = await Promise.all(entries.map(({ id }) => service.get(`/log/${id}`)));
    const joined = alone.map(({ text }) => text).join(",");
    expect(list.text).toBe(`{"entries":[${joined}],"page":1,"per_page":200,"total":${SIZE}}`);
  });

  test("come in pages", async () => {
    const { body } = await service.get("/log?page=2&per_page=5");
    expect(body.entries).toEqual(entries.slice(5, 10));
    expect(body).toMatchObject({ page: 2, per_page: 5, total: SIZE });
    expect((await service.get("/log?page=3&per_page=5")).body.entries).toHaveLength(2);
    expect((await service.get("/log?page=4&per_page=5")).body.entries).toEqual([]);
  });

  test("GET /log/head tells the newest", async () => {
    const { id, entry_hash, timestamp } = entries.at(-1)!;
    expect((await service.get("/log/head")).body).toEqual({
      head: { id, entry_hash, timestamp, event_type: "https://x-service.example/predicates/authorship/v1" },
      entry_count: SIZE,
    });
  });

  test("that do not exist are 404, ids that are none 422", async () => {
    for (const id of ["0", "13", "9007199254740991"]) expectProblem(await service.get(`/log/${id}`), 404, "not-found");
    for (const id of ["1e3", "-1", "+1", "01", "1.0", "x", "9007199254740993", "%00", "1%20", "1%2F2"])
      expectProblem(await service.get(`/log/${id}`), 422, "invalid-input");
  });
});

describe("tree heads", () => {
  test("there is one for every size, signed, with the root of that size", async () => {
    for (let size = 1; size <= SIZE; size++) {
      const { body } = await service.get(`/log/sth/${size}`);
      expect(body).toMatchObject({ tree_size: size, tree_version: 2, root_hash: rootOf(digests.slice(0, size), 2) });
      expectSigned(body);
    }
    expect((await service.get("/log/sth")).body).toEqual((await service.get(`/log/sth/${SIZE}`)).body);
  });

  test("a range of heads is served with the same content as each single head", async () => {
    const single = await Promise.all([5, 6, 7].map(async (size) => (await service.get(`/log/sth/${size}`)).text));
    expect((await service.get("/log/heads?from=5&limit=3")).text).toBe(`{"heads":[${single.join()}]}`);
    const sizes = async (query: string) =>
      (await service.get(`/log/heads${query}`)).body.heads.map((head: Head) => head.tree_size);
    expect(await sizes("")).toEqual(digests.map((_, i) => i + 1));
    expect(await sizes(`?from=${SIZE}&limit=1000`)).toEqual([SIZE]);
    expect(await sizes("?from=9007199254740991&limit=1000")).toEqual([]);
    for (const query of ["from=0", "limit=0", "limit=1001", "from=x"])
      expectProblem(await service.get(`/log/heads?${query}`), 422, "invalid-input");
  });

  test("of sizes that never were are 404, of sizes that are none 422", async () => {
    for (const size of ["0", "13", "4294967296", "9007199254740991"])
      expectProblem(await service.get(`/log/sth/${size}`), 404, "not-found");
    for (const size of ["-1", "1e1", "x", "9007199254740993"])
      expectProblem(await service.get(`/log/sth/${size}`), 422, "invalid-input");
  });

  test("the operator key is shown with its fingerprint", async () => {
    const { body } = await service.get("/log/operator-key");
    const spki = createPublicKey(body.public_key).export({ type: "spki", format: "der" });
    expect(body).toMatchObject({ fingerprint: `sha256:${sha256(spki)}`, algorithm: "ed25519" });
    expect(body.fingerprint).toBe(service.server.operatorFingerprint);
  });
});

describe("inclusion proofs", () => {
  test.each<Version>([1, 2])("lead to the root of every size under lens %i", async (version) => {
    for (let size = 1; size <= SIZE; size++)
      for (let index = 0; index < size; index++) {
        const { body } = await service.get(`/log/proof/${index}?tree_size=${size}&tree_version=${version}`);
        expect(body).toMatchObject({
          leaf_index: index,
          tree_size: size,
          tree_version: version,
          entry_hash: digests[index],
          leaf_hash: leaf(digests[index]!, version),
          root_hash: rootOf(digests.slice(0, size), version),
        });
        expect(climb(body.audit_path, digests[index]!, index, size, version)).toBe(body.root_hash);
        expectSigned(body.sth);
      }
  });

  test("default to the current size and lens 2", async () => {
    const { body } = await service.get("/log/proof/3");
    expect(body).toEqual((await service.get(`/log/proof/3?tree_size=${SIZE}&tree_version=2`)).body);
  });

  test("of leaves that do not exist are 404, for sizes that do not fit 422", async () => {
    expectProblem(await service.get(`/log/proof/${SIZE}`), 404, "not-found");
    expectProblem(await service.get(`/log/proof/9007199254740991`), 404, "not-found");
    for (const query of ["tree_size=13", "tree_size=3", "tree_size=0", "tree_size=-1", "tree_size=1e1", "tree_size="])
      expectProblem(await service.get(`/log/proof/3?${query}`), 422, "invalid-input");
    for (const query of ["tree_version=0", "tree_version=3", "tree_version=two", "tree_size=9007199254740993"])
      expectProblem(await service.get(`/log/proof/3?${query}`), 422, "invalid-input");
    for (const index of ["-1", "x", "1e0"])
      expectProblem(await service.get(`/log/proof/${index}`), 422, "invalid-input");
  });
});

describe("consistency proofs", () => {
  /** The root of a stack of complete subtrees, given as [level, hash], largest first. */
  function fold(peaks: readonly (readonly [number, string])[], version: Version): string {
    let [level, hash] = peaks.at(-1)!;
    for (const [peakLevel, peak] of peaks.slice(0, -1).reverse()) {
      for (; level < peakLevel; level++) hash = node(hash, hash, version);
      hash = node(peak, hash, version);
      level++;
    }
    return hash;
  }

  /** Levels of the complete subtrees that cover [from, to), left to right. */
  function cover(from: number, to: number): number[] {
    const levels: number[] = [];
    for (let at = from; at < to; at += 2 ** levels.at(-1)!) {
      let level = 0;
      while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= to) level++;
      levels.push(level);
    }
    return levels;
  }

  test.each<Version>([1, 2])("join every two sizes under lens %i", async (version) => {
    for (let to = 1; to <= SIZE; to++)
      for (let from = 1; from <= to; from++) {
        const { body } = await service.get(`/log/consistency?from=${from}&to=${to}&tree_version=${version}`);
        expect(body).toMatchObject({
          from_size: from,
          to_size: to,
          tree_version: version,
          from_root: rootOf(digests.slice(0, from), version),
          to_root: rootOf(digests.slice(0, to), version),
        });
        const pair = (levels: number[], hashes: string[]) => levels.map((level, i) => [level, hashes[i]!] as const);
        const stack = pair(cover(0, from), body.peaks);
        expect(stack).toHaveLength(body.peaks.length);
        expect(fold(stack, version)).toBe(body.from_root);
        expect(cover(from, to)).toHaveLength(body.extension.length);
        for (let [level, hash] of pair(cover(from, to), body.extension)) {
          for (; stack.at(-1)?.[0] === level; level++) hash = node(stack.pop()![1], hash, version);
          stack.push([level, hash]);
        }
        expect(fold(stack, version)).toBe(body.to_root);
        expectSigned(body.from_sth);
        expectSigned(body.to_sth);
      }
  });

  test("default to the current size; sizes that do not fit are 422", async () => {
    expect((await service.get("/log/consistency?from=5")).body).toMatchObject({ to_size: SIZE, tree_version: 2 });
    for (const query of ["", "?to=3", "?from=0", "?from=13", "?from=3&to=2", "?from=1&to=13", "?from=1e0", "?from=-1"])
      expectProblem(await service.get(`/log/consistency${query}`), 422, "invalid-input");
    for (const query of ["?from=1&tree_version=3", "?from=9007199254740993", "?from=1&from=2", "?from=1&to="])
      expectProblem(await service.get(`/log/consistency${query}`), 422, "invalid-input");
  });
});

test("POST /log/verify finds nothing wrong, with or without a body", async () => {
  for (const body of ["", "{}", "anything"]) {
    const reply = await service.post("/log/verify", body);
    expect(reply.body).toEqual({ valid: true, entry_count: SIZE, errors: [], warnings: [] });
  }
});
