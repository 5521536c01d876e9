/** Answers that are too long, lists that grow while they are read, and waiting times that a service requests. */
import { beforeAll, describe, expect, test } from "vitest";
import { createClient, type Session } from "#cairnlog/server/client/index.js";
import { startTestService } from "../server/harness.js";
import { all, failure, newClient } from "./clients.js";

/** An entry bundle of 256 entries of 65,535 bytes, each behind its length. */
const LIMIT = 256 * (2 + 65_535);

describe("an answer that is longer than the largest entry bundle", () => {
  test("is not read to its end, and its connection is let go", async () => {
    let read = 0;
    let left = 0;
    const body = () =>
      new ReadableStream({
        pull(controller) {
          read += 2 ** 20;
          controller.enqueue(new Uint8Array(2 ** 20).fill(0x20));
        },
        cancel: () => void left++,
      });
    const client = createClient({ server: "http://127.0.0.1:1", fetch: async () => new Response(body()) });
    const error = await failure(client.health());
    expect(error).toMatchObject({ code: "malformed-answer", message: expect.stringContaining(`${LIMIT} bytes`) });
    expect(read).toBeLessThan(LIMIT + 4 * 2 ** 20);
    expect(await failure(client.log.tile(2, 0, 0))).toMatchObject({ code: "malformed-answer" });
    expect(left).toBe(2);
  });

  test("is asked for again in smaller parts, down to one item, without losing any", async () => {
    const service = await startTestService();
    for (let n = 0; n < 43; n++) await newClient(service.url).client.keys.register({ pseudonym: `Ada ${n}` });
    for (const most of [40, 39]) {
      const asked: string[] = [];
      const narrow: typeof fetch = async (input, init) => {
        const url = new URL(String(input));
        asked.push(url.search);
        const size = Number(url.searchParams.get("per_page") ?? url.searchParams.get("page_size") ?? 1);
        return size > most ? new Response(Buffer.alloc(LIMIT + 1, " ")) : fetch(input, init);
      };
      const client = createClient({ server: service.url, fetch: narrow });
      const ids = Array.from({ length: 43 }, (_, i) => i + 1);
      expect((await all(client.log.entries())).map(({ id }) => id)).toEqual(ids);
      expect((await all(client.log.since(40))).map(({ id }) => id)).toEqual(ids.slice(40));
      expect((await all(client.audit.entries())).map(({ id }) => id)).toEqual(ids);
      expect(asked[1]).toContain("per_page=40");
    }
  });
});

describe("the inbox", () => {
  let operator: unknown;
  beforeAll(async () => {
    operator = (await (await startTestService()).get("/log/operator-key")).body;
  });
  const notification = (id: number) => ({
    id,
    kind: "attestation_request",
    request_id: "a",
    responder_fingerprint: null,
    created_at: "2026-01-01T00:00:00.000000Z",
    read: false,
  });
  const session: Session = {
    token: "a.b.c",
    fingerprint: `sha256:${"0".repeat(64)}`,
    pseudonym: "Ada",
    expires_at: "2999-01-01T00:00:00.000000Z",
  };
  const inbox = (pageOf: (page: number) => number[]) =>
    createClient({
      server: "http://127.0.0.1:1",
      session,
      fetch: async (input) => {
        if (String(input).endsWith("/log/operator-key")) return Response.json(operator);
        const page = Number(new URL(String(input)).searchParams.get("page"));
        // Without a socket, nothing would end a client that goes on for ever.
        if (page > 10) throw new Error("It goes on for ever.");
        const notifications = pageOf(page).map(notification);
        return Response.json({ notifications, page, per_page: 200, total: 1_000 });
      },
    }).inbox.list();
  const down = (from: number, count: number) => Array.from({ length: count }, (_, i) => from - i);

  test("tells each notification once, also when new ones move it to the next page", async () => {
    const list = inbox((page) => (page === 1 ? down(500, 200) : down(303, 100)));
    expect((await all(list)).map(({ id }) => id)).toEqual(down(500, 297));
  });

  test("goes on with the session of its moment, also when the one that it began with has ended", async () => {
    const soon = { ...session, expires_at: new Date(Date.now() + 60_000).toISOString() };
    let renewed = 0;
    const asked: (string | null)[] = [];
    const client = createClient({
      server: "http://127.0.0.1:1",
      session: soon,
      fetch: async (input, init) => {
        const url = new URL(String(input));
        if (url.pathname.endsWith("/log/operator-key")) return Response.json(operator);
        if (url.pathname.endsWith("/auth/renew")) return Response.json({ ...soon, token: `a.b.${++renewed}` });
        asked.push(new Headers(init?.headers).get("authorization"));
        const page = Number(url.searchParams.get("page"));
        const notifications = down(700 - 200 * page, page < 3 ? 200 : 1).map(notification);
        return Response.json({ notifications, page, per_page: 200, total: 401 });
      },
    });
    expect(await all(client.inbox.list())).toHaveLength(401);
    expect(asked).toEqual([1, 2, 3].map((n) => `Bearer a.b.${n}`));
  });

  test("that gives the same page for ever, or is out of order, is refused", async () => {
    for (const pageOf of [
      () => down(500, 200),
      (page: number) => (page === 1 ? down(500, 200) : [...down(300, 2), 299]),
      () => [3, 4],
      () => down(500, 201),
    ])
      expect(await failure(all(inbox(pageOf)))).toMatchObject({ code: "malformed-answer" });
  });
});

test.each([
  ["7", 7],
  ["0", undefined],
  ["", undefined],
  ["-5", undefined],
  ["soon", undefined],
])("Retry-After %j is no advice to ask again at once", async (header, retryAfter) => {
  const problem = { type: "about:blank", title: "No", status: 429, detail: "Slower.", code: "rate-limited" };
  const headers = { "retry-after": header };
  const client = createClient({
    server: "http://127.0.0.1:1",
    fetch: async () => Response.json(problem, { status: 429, headers }),
  });
  const error = await failure(client.health());
  expect(error).toMatchObject({ status: 429, code: "rate-limited" });
  expect(error.retryAfter).toBe(retryAfter);
});
