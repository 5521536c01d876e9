/** Audit export over HTTP; CSV is read back by a parser written here from RFC 4180. */
import { once } from "node:events";
import { connect } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { canonical, newManifest, newSigner, registration, submission } from "../../server/signers.js";

let service: TestService;
const TITLES = ["plain", 'with "quotes", commas', "lines\r\nand\nmore", "=1+1", "+1", "-1", "@cmd", "Ünïcödé 🔑"];
const signer = newSigner();

beforeAll(async () => {
  service = await startTestService();
  for (const title of TITLES) {
    const reply = await service.post("/attestations", submission(signer, newManifest(title)));
    expect(reply.status, reply.text).toBe(200);
  }
  await service.post("/keys/register", registration(newSigner(), "=cmd|' /C calc'!A0"));
});

/** RFC 4180, section 2. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/y;
  while (field.lastIndex < text.length) {
    const match = field.exec(text);
    if (!match) throw new Error(`not CSV at ${field.lastIndex}`);
    rows.at(-1)!.push(match[1] === undefined ? match[2]! : match[1].replaceAll('""', '"'));
    if (match[3] === "\r\n") rows.push([]);
  }
  return rows.filter((row) => row.length > 0);
}

describe("GET /audit/export", () => {
  test("gives entries as the log serves them, a page at a time", async () => {
    const all = (await service.get("/log")).body.entries;
    const { body } = await service.get("/audit/export?page_size=1000");
    expect(body).toEqual({ entries: all, page: 1, page_size: 1000, total: all.length, truncated: false });
    const pages = await Promise.all([1, 2, 3].map((page) => service.get(`/audit/export?page_size=4&page=${page}`)));
    expect(pages.flatMap((page) => page.body.entries)).toEqual(all);
    expect((await service.get("/audit/export?page=99")).body).toMatchObject({ entries: [], total: all.length });
    const fourth = all[3].payload.document_hash;
    expect((await service.get(`/audit/export?document_hash=${fourth}`)).body.entries).toEqual([all[3]]);
    expect((await service.get("/audit/export?end_date=2001-01-01")).body.total).toBe(0);
  });

  test("scopes select by kind of event", async () => {
    const total = async (query: string) => (await service.get(`/audit/export?${query}`)).body.total;
    expect(await total("scope=keys")).toBe(2);
    expect(await total("scope=attestations")).toBe(TITLES.length);
    for (const scope of ["endorsements", "claims", "requests"]) expect(await total(`scope=${scope}`)).toBe(0);
    expect(await total(`scope=attestations&fingerprint=${signer.fingerprint}`)).toBe(TITLES.length);
    expect(await total(`scope=keys&fingerprint=${signer.fingerprint}`)).toBe(1);
  });

  test("CSV comes back whole from an independent parser, formulas neutralised", async () => {
    const reply = await service.get("/audit/export?format=csv&page_size=1000");
    expect(reply.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(reply.text.endsWith("\r\n")).toBe(true);
    const [header, ...rows] = parseCsv(reply.text);
    expect(header).toEqual(
      "id,timestamp,event_type,entry_hash,previous_hash,chain_version,fingerprint,document_hash,payload".split(","),
    );
    const entries = (await service.get("/log")).body.entries;
    expect(rows).toHaveLength(entries.length);
    for (const [i, entry] of entries.entries()) {
      const [id, timestamp, type, hash, previous, version, fingerprint, document, payload] = rows[i]!;
      expect([id, timestamp, type, hash, version]).toEqual([
        `${entry.id}`,
        entry.timestamp,
        entry.event_type,
        entry.entry_hash,
        "2",
      ]);
      expect(previous).toBe(entry.previous_hash ?? "");
      expect(fingerprint).toBe(entry.payload.fingerprint ?? entry.payload.signer_key_fingerprint);
      expect(document).toBe(entry.payload.document_hash ?? "");
      expect(payload).toBe(canonical(entry.payload));
      for (const cell of rows[i]!) expect(cell).not.toMatch(/^[=+\-@]/);
    }
  });

  test("a cell that begins like a formula is preceded by an apostrophe", async () => {
    await service.server.registry.log.append({
      event_type: "=HYPERLINK(1)",
      payload: { document_hash: "@x", fingerprint: "-y" },
    });
    const { text } = await service.get("/audit/export?format=csv&page_size=1000");
    const last = parseCsv(text).at(-1)!;
    expect([last[2], last[6], last[7]]).toEqual(["'=HYPERLINK(1)", "'-y", "'@x"]);
  });

  test.each([
    "page=11&page_size=1000",
    // 10,001: one entry beyond the limit.
    "page=73&page_size=137",
    "page_size=1001",
    "page_size=0",
    "page=101",
    "format=xml",
    "scope=none",
    "start_date=soon",
  ])("refuses %s", async (query) => expectProblem(await service.get(`/audit/export?${query}`), 422, "invalid-input"));

  test("reaches exactly 10,000 entries, and says when there are more", async () => {
    const { log } = service.server.registry;
    const missing = 10_000 - log.size;
    await log.append(Array.from({ length: missing }, (_, n) => ({ event_type: "filler", payload: { n } })));
    const whole = await service.get("/audit/export?page=10&page_size=1000");
    expect(whole.body).toMatchObject({ page: 10, page_size: 1000, total: 10_000, truncated: false });
    expect(whole.body.entries).toHaveLength(1000);
    expect(whole.body.entries.at(-1).id).toBe(10_000);
    // The first page has the same values as the last.
    expect((await service.get("/audit/export?page_size=1")).body).toMatchObject({ total: 10_000, truncated: false });

    await log.append({ event_type: "filler", payload: { n: missing } });
    const last = await service.get("/audit/export?page=10&page_size=1000");
    expect(last.body).toMatchObject({ total: 10_001, truncated: true });
    expect(last.body.entries.at(-1).id).toBe(10_000);
    expect((await service.get("/audit/export?page_size=1")).body).toMatchObject({ total: 10_001, truncated: true });
    // The entries that were not reached follow the last one that was reached.
    const rest = await service.get("/audit/export?after_id=10000");
    expect(rest.body).toMatchObject({ total: 1, truncated: false, entries: [{ id: 10_001 }] });
  });

  test("is made no faster than the client reads: one that reads nothing costs a chunk, not the page", async () => {
    const { log } = service.server.registry;
    const text = "x".repeat(200_000);
    for (let n = 0; n < 600; n += 20)
      await log.append(Array.from({ length: 20 }, (_, i) => ({ event_type: "bulky", payload: { n: n + i, text } })));
    const since = encodeURIComponent(log.entry(log.size - 599)!.timestamp);
    const socket = connect(service.server.address.port, "127.0.0.1");
    await once(socket, "connect");
    const before = process.memoryUsage().rss;
    socket.write(`GET /api/v1/audit/export?page_size=600&start_date=${since} HTTP/1.1\r\nHost: test\r\n\r\n`);
    await once(socket, "readable");
    await new Promise((resolve) => setTimeout(resolve, 300));
    // 120 MB in all.
    expect(process.memoryUsage().rss - before).toBeLessThan(60 * 2 ** 20);
    let received = 0;
    socket.on("data", (data) => {
      received += data.length;
    });
    socket.resume();
    while (received < 120_000_000) await once(socket, "data");
    socket.destroy();
  });
});
