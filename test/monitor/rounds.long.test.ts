/** A round of a monitor: its requests, the order in which it verifies the answers, and its output. */
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { cairnlogFollower } from "#cairnlog/server/cli/log/follower.js";
import { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { anyEvent } from "../anyevent.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { isPage } from "./liar.js";
import { caught, forged, hastyFetch, newMonitor } from "./monitors.js";

const SIZE = 2_450;
const FINGERPRINT = `sha256:${"ab".repeat(32)}`;
let long: TestService;
/** 210 entries: a page of 200 and one of 10. */
let short: TestService;
let proxy: LyingProxy;
beforeAll(async () => {
  long = await startTestService();
  short = await startTestService();
  await grow(long, SIZE);
  await grow(short, 210);
});
beforeEach(async () => {
  proxy = await LyingProxy.before(long.url);
});

async function grow(service: TestService, count: number): Promise<void> {
  const note = anyEvent();
  for (let left = count; left > 0; left -= 500)
    await service.server.registry.log.append(Array(Math.min(500, left)).fill(note));
}

/** The requests since the last call. */
const asked = () => proxy.asked.splice(0).map((request) => request.replace(/^GET /, ""));

test.each([
  ["copies", false],
  ["compares", true],
] as const)(
  "a round that %s for hours asks for the newest head in between: what grows is not silent, and not told as copied",
  async (_, audit) => {
    const service = await startTestService();
    await grow(service, 1_200);
    proxy.upstream = service.url;
    const folder = new MonitorFolder(temporaryFolder());
    const follower = cairnlogFollower({ server: proxy.url, folder, fetch: hastyFetch() });
    if (audit) await follower.round({ audit: false });
    const now = performance.now.bind(performance);
    let elapsed = 0;
    vi.spyOn(performance, "now").mockImplementation(() => now() + elapsed);
    let pages = 0;
    proxy.lie = (path, answer) => {
      if (path.startsWith("/log?") && ++pages === 3) elapsed += 3_600_000;
      return answer;
    };
    asked();
    let isGrown = false;
    proxy.seize = (path) => {
      if (path.startsWith("/log?") && !isGrown) {
        isGrown = true;
        void service.server.registry.log.append(anyEvent());
      }
      return false;
    };
    await follower.round({ audit });
    vi.restoreAllMocks();
    expect(asked().filter((path) => path === "/log/sth")).toHaveLength(2);
    expect([(await follower.newest())?.tree_size, await follower.verified()]).toEqual([
      1_201,
      {
        text: expect.stringMatching(/^verified: 1200 entries, root /),
        json: { verified: 1_200, head: (await service.get("/log/sth/1200")).body },
      },
    ]);
    await follower.round({ audit: false });
    expect((await follower.verified()).json).toMatchObject({ verified: 1_201, head: { tree_size: 1_201 } });
    await follower.close();
  },
);

test("every entry and head is asked for once, and then one page again", async () => {
  const { monitor } = newMonitor(proxy.url);
  expect([monitor.size, await monitor.newestHead()]).toEqual([0, null]);
  await monitor.round();
  const pages = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, i) => `/log?page=${from + i}&per_page=200`);
  expect(asked()).toEqual([
    "/log/operator-key",
    "/log/operator-key",
    "/log/checkpoint",
    "/tlog/vkey",
    "/tlog/checkpoint",
    "/log/sth",
    "/log/heads?from=1&limit=1000",
    ...pages(1, 5),
    "/log/heads?from=1001&limit=1000",
    ...pages(6, 10),
    "/log/heads?from=2001&limit=450",
    ...pages(11, 13),
  ]);
  expect([monitor.size, await monitor.newestHead()]).toEqual([SIZE, (await long.get("/log/sth")).body]);
  await monitor.round();
  const [key, note, vkey, checkpoint, head, page, heads, ...more] = asked();
  expect([key, note, vkey, checkpoint, head, more]).toEqual([
    "/log/operator-key",
    "/log/checkpoint",
    "/tlog/vkey",
    "/tlog/checkpoint",
    "/log/sth",
    [],
  ]);
  const number = Number(/^\/log\?page=(\d+)&per_page=200$/.exec(page!)![1]);
  const limit = Math.min(200, SIZE - 200 * (number - 1));
  expect(heads).toBe(`/log/heads?from=${200 * (number - 1) + 1}&limit=${limit}`);
  await monitor.close();
  expect(monitor.size).toBe(0);
});

test("a log that grows before whichever request of a round is followed, and accused of nothing", async () => {
  const service = await startTestService();
  await grow(service, 210);
  for (let grown = 0, isReached = true; isReached; grown++) {
    let requests = 0;
    const { monitor } = newMonitor(service.url, {
      fetch: async (...request) => {
        if (requests++ === grown) await grow(service, 3);
        return fetch(...request);
      },
    });
    await monitor.round();
    isReached = requests > grown;
    requests = Number.POSITIVE_INFINITY;
    await monitor.round({ audit: true });
    expect(monitor.size).toBe(await service.entryCount());
    await monitor.close();
  }
});

test("with --audit everything is fetched again, and the progress is shown", async () => {
  proxy.upstream = short.url;
  const told: [string, number, number][] = [];
  const { monitor } = newMonitor(proxy.url, { onProgress: (...progress) => told.push(progress) });
  await monitor.round();
  expect(told.splice(0)).toEqual([
    ["entries", 200, 210],
    ["entries", 210, 210],
  ]);
  await monitor.round();
  expect(told).toEqual([]);
  asked();
  await monitor.round({ audit: true });
  expect(told).toEqual([
    ["audit", 200, 210],
    ["audit", 210, 210],
  ]);
  expect(asked().slice(5)).toEqual([
    "/log?page=1&per_page=200",
    "/log/heads?from=1&limit=200",
    "/log?page=2&per_page=200",
    "/log/heads?from=201&limit=10",
  ]);
  await monitor.close();
});

test.each([1, 200, 201, 210])("entry %d is among those that are drawn to be compared", async (id) => {
  proxy.upstream = short.url;
  const { monitor } = newMonitor(proxy.url);
  await monitor.round();
  const change = (entry: Entry) => (entry.id === id ? forged(entry) : entry);
  proxy.lie = (path, answer) => (isPage(path) ? { ...answer, entries: answer.entries.map(change) } : answer);
  const rounds = async () => {
    // Each round picks one of two pages, so a hundred rounds practically always include both.
    for (let n = 0; n < 100; n++) await monitor.round();
  };
  const { entry, known, shown } = await caught(rounds(), "changed-entry", new RegExp(`^Entry ${id} `));
  expect(entry).toMatchObject({ id });
  const head = (await short.get(`/log/sth/${id}`)).body;
  expect([known, shown]).toEqual([head, head]);
  await monitor.close();
});

describe("pages that are too long to be borne", () => {
  /** Answers requests for pages of these sizes with an endless body. */
  const endless = async (entries: number, ...sizes: number[]) => {
    const service = await startTestService();
    await grow(service, entries);
    proxy.upstream = service.url;
    proxy.seize = (path, response) => {
      if (!sizes.some((size) => isPage(path) && path.endsWith(`&per_page=${size}`))) return false;
      response.end(" ".repeat(256 * (2 + 65_535) + 1));
      return true;
    };
  };

  test("are asked for in smaller ones", async () => {
    await endless(23, 200);
    const { monitor } = newMonitor(proxy.url);
    await monitor.round();
    expect(monitor.size).toBe(23);
    expect(asked().filter(isPage)).toEqual([
      "/log?page=1&per_page=200",
      "/log?page=1&per_page=20",
      "/log?page=1&per_page=200",
      "/log?page=2&per_page=20",
    ]);
    await monitor.close();
  });

  test("but not pages that are none", async () => {
    await endless(23);
    proxy.lie = (path, answer) => (isPage(path) ? "<html>" : answer);
    const { monitor } = newMonitor(proxy.url);
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    expect(asked().filter(isPage)).toEqual(["/log?page=1&per_page=200"]);
    await monitor.close();
  });

  test("or one by one", async () => {
    await endless(2, 200, 20);
    const { monitor } = newMonitor(proxy.url);
    await monitor.round();
    expect(monitor.size).toBe(2);
    const long = ["/log?page=1&per_page=200", "/log?page=1&per_page=20"];
    expect(asked().filter(isPage)).toEqual([...long, "/log?page=1&per_page=1", ...long, "/log?page=2&per_page=1"]);
    await monitor.close();
  });

  test("and accuse nobody when one entry alone is", async () => {
    await endless(1, 200, 20, 1);
    const { monitor } = newMonitor(proxy.url);
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    expect(asked().filter(isPage)).toHaveLength(3);
    await monitor.close();
  });
});

test("a log without a checkpoint, and an empty one, are followed", async () => {
  const empty = await startTestService();
  proxy.upstream = empty.url;
  const { monitor } = newMonitor(proxy.url);
  await monitor.round();
  expect([monitor.size, await monitor.newestHead()]).toEqual([0, null]);
  await monitor.round({ audit: true });
  await grow(empty, 2);
  proxy.lie = (path, answer) => {
    const none = { type: "about:blank", title: "No", status: 404, detail: "None.", code: "not-found" };
    return path === "/log/checkpoint" ? JSON.stringify(none) : answer;
  };
  proxy.status = 404;
  await monitor.round();
  expect(monitor.size).toBe(2);
  await monitor.close();
});

describe("watched keys", () => {
  const named = anyEvent({ some_fingerprint: FINGERPRINT.toUpperCase(), other_fingerprint: 7 });

  test("are reported again until the receiver has answered, before any other request", async () => {
    const service = await startTestService();
    await service.server.registry.log.append([anyEvent(), named, named]);
    proxy.upstream = service.url;
    const told: number[] = [];
    let isDeaf = true;
    const { monitor, folder } = newMonitor(proxy.url, {
      watched: new Set([FINGERPRINT]),
      onWatched: async ({ id }, fingerprint) => {
        expect(fingerprint).toBe(FINGERPRINT);
        told.push(id);
        if (isDeaf && id === 3) throw new Error("nobody heard");
      },
    });
    await expect(monitor.round()).rejects.toThrow("nobody heard");
    expect([told.splice(0), folder.told]).toEqual([[2, 3], 0]);
    isDeaf = false;
    proxy.seize = (path, response) => path === "/log/checkpoint" && Boolean(response.end("<html>"));
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    expect([told.splice(0), folder.told]).toEqual([[2, 3], 3]);
    proxy.repent();
    await monitor.round();
    expect(told).toEqual([]);
    await service.server.registry.log.append(named);
    await monitor.round();
    expect([told, folder.told]).toEqual([[4], 4]);
    await monitor.close();
  });

  test("are nobody's concern where none is watched", async () => {
    proxy.upstream = short.url;
    const { monitor, folder } = newMonitor(proxy.url);
    await monitor.round();
    expect(folder.told).toBe(210);
    await monitor.close();
  });
});
