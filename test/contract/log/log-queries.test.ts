/**
 * Finding entries over HTTP; the rules themselves are compared with a naive filter in `test/log/read/query.long.test.ts`.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, NO_FRONT_ENDS, startTestService, type TestService } from "../../server/harness.js";
import { newManifest, newSigner, submission } from "../../server/signers.js";

let service: TestService;
const ada = newSigner();
const base = "https://x-service.example/predicates";
const titles = ["one", "two", "three", "four", "five"];

beforeAll(async () => {
  service = await startTestService();
  for (const [i, title] of titles.entries()) {
    const manifest = newManifest(title) as { document: Record<string, unknown> };
    manifest.document.tags = i % 2 ? ["Odd", "all"] : ["even", "All", " padded "];
    const type = i === 4 ? "peer_review" : "authorship";
    const reply = await service.post("/attestations", submission(ada, manifest as never, { attestation_type: type }));
    expect(reply.status, reply.text).toBe(200);
  }
});

const ids = async (path: string): Promise<number[]> => {
  const reply = await service.get(path);
  expect(reply.status, reply.text).toBe(200);
  expect(reply.body.total).toBe(reply.body.entries.length);
  return reply.body.entries.map((entry: { id: number }) => entry.id);
};

describe("GET /log", () => {
  test("filters by one event type or several", async () => {
    expect(await ids("/log?event_type=key_registration")).toEqual([1]);
    expect(await ids(`/log?event_type=${encodeURIComponent(`${base}/peer-review/v1`)}`)).toEqual([6]);
    expect(await ids(`/log?event_type=key_registration,${encodeURIComponent(`${base}/peer-review/v1`)}`)).toEqual([
      1, 6,
    ]);
    expect(await ids("/log?event_type=unheard-of")).toEqual([]);
  });

  test("a tag matches a whole element, ignoring case; white space counts", async () => {
    expect(await ids("/log?tags=odd")).toEqual([3, 5]);
    expect(await ids("/log?tags=ALL,Even")).toEqual([2, 4, 6]);
    expect(await ids("/log?tags=padded")).toEqual([]);
    expect(await ids("/log?tags=%20padded%20")).toEqual([2, 4, 6]);
    expect(await ids("/log?tags=al")).toEqual([]);
  });

  test("a title is found by the beginnings of its words, ignoring case and order", async () => {
    expect(await ids("/log?title=T")).toEqual([3, 4]);
    expect(await ids("/log?title=THREE")).toEqual([4]);
    expect(await ids("/log?title=hree")).toEqual([]);
    expect(await ids("/log?title=t&tags=odd")).toEqual([3]);
    expectProblem(await service.get("/log?title=%21"), 422, "invalid-input");
    expectProblem(await service.get("/log?title="), 422, "invalid-input");
  });

  test("names=true adds the names of the keys that the entries name, once each", async () => {
    const { body } = await service.get("/log?names=true");
    expect(body.names).toEqual({ [ada.fingerprint]: expect.any(String) });
    expect((await service.get(`/log/by-fingerprint/${ada.fingerprint}?names=true`)).body.names).toEqual(body.names);
    for (const query of ["", "?names=false"])
      expect((await service.get(`/log${query}`)).body).not.toHaveProperty("names");
    expectProblem(await service.get("/log?names=1"), 422, "invalid-input");
  });

  test("search finds the beginning of a digest and a complete hash in both forms", async () => {
    const { body } = await service.get("/log/3");
    expect(await ids(`/log?search=${body.entry_hash.slice(0, 12)}`)).toContain(3);
    const hash = body.payload.document_hash.slice("sha256:".length);
    expect(await ids(`/log?search=${hash}`)).toEqual([3]);
    expect(await ids(`/log?search=SHA256:${hash.toUpperCase()}`)).toEqual([3]);
    expect(await ids(`/log?search=sha256:${hash.slice(0, 20)}`)).toEqual([3]);
    // The hash is stored with its prefix, so it does not begin with bare digits. Its end and middle match nothing.
    expect(await ids(`/log?search=${hash.slice(0, 20)}`)).toEqual([]);
    expect(await ids(`/log?search=${hash.slice(20)}`)).toEqual([]);
  });

  test("filters combine, and pages join", async () => {
    expect(
      await ids(`/log?tags=all&event_type=${encodeURIComponent(`${base}/authorship/v1`)}&search=${ada.fingerprint}`),
    ).toEqual([]);
    const pages = await Promise.all([1, 2, 3].map((page) => service.get(`/log?tags=all&per_page=2&page=${page}`)));
    expect(pages.map((page) => page.body.entries.map((entry: { id: number }) => entry.id))).toEqual([
      [2, 3],
      [4, 5],
      [6],
    ]);
    expect(pages.map((page) => page.body.total)).toEqual([5, 5, 5]);
  });

  test.each(["s", "SHA", "sha256", "sha256:", "sha256:a", "SHA256:ABC"])(
    "a search for %s, with which most hashes begin, wants more digits",
    async (term) => {
      const reply = await service.get(`/log?search=${term}`);
      expectProblem(reply, 422, "invalid-input");
      expect(reply.body.errors).toEqual([{ path: "/search", message: expect.stringMatching(/at least 4 digits/) }]);
    },
  );

  test("takes 32 tags or types, separated by commas, and no more", async () => {
    const list = (count: number) => Array.from({ length: count }, (_, i) => `name${i}`).join();
    for (const name of ["tags", "event_type"]) {
      expect(await ids(`/log?${name}=${list(32)}`)).toEqual([]);
      const reply = await service.get(`/log?${name}=${list(33)}`);
      expectProblem(reply, 422, "invalid-input");
      expect(reply.body.errors).toEqual([{ path: `/${name}`, message: "It must name 1 to 32, separated by commas." }]);
    }
    // Nothing between two commas is no name.
    expect(await ids(`/log?tags=${",".repeat(40)}odd,`)).toEqual([3, 5]);
  });

  test.each([
    "search=",
    "tags=",
    "event_type=,",
    `tags=${"a,".repeat(33)}`,
    "search=a&search=b",
    "page=0",
    "per_page=201",
  ])("refuses %s", async (query) => expectProblem(await service.get(`/log?${query}`), 422, "invalid-input"));
});

describe("GET /log/by-fingerprint/{fingerprint}", () => {
  test("finds the key's registration and attestations, ascending, paged", async () => {
    const { body } = await service.get("/log/1");
    const { fingerprint } = body.payload;
    expect(await ids(`/log/by-fingerprint/${fingerprint}`)).toEqual([1, 2, 3, 4, 5, 6]);
    const page = await service.get(`/log/by-fingerprint/${fingerprint}?per_page=4&page=2`);
    expect(page.body).toMatchObject({ page: 2, per_page: 4, total: 6, entries: [{ id: 5 }, { id: 6 }] });
    expectProblem(await service.get(`/log/by-fingerprint/sha256:${"0".repeat(64)}`), 404, "not-found");
    expectProblem(await service.get(`/log/by-fingerprint/${fingerprint}?per_page=0`), 422, "invalid-input");
    expect(await ids(`/log/by-fingerprint/${service.server.operatorFingerprint}`)).toEqual([]);
  });
});

describe("GET /log/audit-trail", () => {
  test("needs one criterion, and combines them", async () => {
    expectProblem(await service.get("/log/audit-trail"), 422, "invalid-input");
    expectProblem(await service.get("/log/audit-trail?tags=all"), 422, "invalid-input");
    const { body } = await service.get("/log/3");
    const { signer_key_fingerprint: signer, document_hash: document } = body.payload;
    expect(await ids(`/log/audit-trail?document_hash=${document}`)).toEqual([3]);
    expect(await ids(`/log/audit-trail?document_hash=${document.slice(7)}&fingerprint=${signer}`)).toEqual([3]);
    expect(await ids(`/log/audit-trail?fingerprint=${signer}&tags=odd`)).toEqual([3, 5]);
    const stamp = encodeURIComponent(body.timestamp);
    expect(await ids(`/log/audit-trail?fingerprint=${signer}&start_date=${stamp}`)).toEqual([3, 4, 5, 6]);
    expect(await ids(`/log/audit-trail?end_date=${stamp}`)).toEqual([1, 2, 3]);
    expect(await ids(`/log/audit-trail?start_date=${stamp}&end_date=${stamp}`)).toEqual([3]);
    const day = body.timestamp.slice(0, 10);
    expect(await ids(`/log/audit-trail?start_date=${day}&end_date=${day}`)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await ids("/log/audit-trail?end_date=2001-01-01")).toEqual([]);
  });

  test.each(["yesterday", "2025-13-01", "2025-02-30", "2025-01-01T00:00:00"])("refuses the date %s", async (date) => {
    expectProblem(await service.get(`/log/audit-trail?start_date=${date}`), 422, "invalid-input");
    expectProblem(await service.get(`/log/audit-trail?end_date=${date}`), 422, "invalid-input");
  });
});

test("a type and a tag with commas are found by their own filter, beside those that the commas separate", async () => {
  const own = await startTestService(NO_FRONT_ENDS);
  const attest = async (title: string, tags: string[], attestation_type: string) => {
    const manifest = newManifest(title) as { document: Record<string, unknown> };
    manifest.document.tags = tags;
    const reply = await own.post("/attestations", submission(ada, manifest as never, { attestation_type }));
    return reply.body.log_entry_id as number;
  };
  const predicate = "https://example.org/a,b";
  const plain = await attest("plain", ["red", " green"], "authorship");
  const commas = await attest("commas", ["Red, green", "other"], predicate);
  const found = async (path: string, query: Record<string, string>) =>
    (await own.get(`${path}?${new URLSearchParams(query)}`)).body;
  const ids = async (path: string, query: Record<string, string>) =>
    (await found(path, query)).entries.map((entry: { id: number }) => entry.id);
  expect(await ids("/log", { event_type: predicate })).toEqual([commas]);
  expect(await ids("/log", { event_type: `key_registration,${base}/authorship/v1` })).toEqual([1, plain]);
  expect(await ids("/log", { tags: "red, green" })).toEqual([plain, commas]);
  expect(await ids("/log", { tags: "red, green", event_type: predicate })).toEqual([commas]);
  expect(await ids("/log/audit-trail", { tags: "red, green", fingerprint: ada.fingerprint })).toEqual([plain, commas]);
  expect(await found("/log", { tags: "red, green", per_page: "1", page: "2" })).toMatchObject({
    entries: [{ id: commas }],
    total: 2,
  });
});

test("GET /log/head tells in which periods the entries were recorded, if asked", async () => {
  const { body } = await service.get("/log/head?periods=7");
  expect(body.activity.counts).toHaveLength(7);
  expect(body.activity.counts.reduce((sum: number, count: number) => sum + count, 0)).toBe(body.entry_count);
  expect((await service.get("/log/1")).body.timestamp).toBe(body.activity.start);
  expect(body.activity.end >= body.head.timestamp).toBe(true);
  expect((await service.get("/log/head")).body).not.toHaveProperty("activity");
  for (const periods of [0, 101, "x"])
    expectProblem(await service.get(`/log/head?periods=${periods}`), 422, "invalid-input");
  const empty = await startTestService(NO_FRONT_ENDS);
  expect((await empty.get("/log/head?periods=3")).body).toEqual({ head: null, entry_count: 0 });
});
