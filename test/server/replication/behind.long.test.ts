/** Nodes that have less of the log than others have shown. They wait, and say so; nobody takes that for a lie of the log. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ReplicaLag } from "#cairnlog/server/http/replica-lag.js";
import { HttpError } from "#cairnlog/server/http/route/problems.js";
import type { Context, Route } from "#cairnlog/server/http/route/route.js";
import type { Monitor } from "#cairnlog/server/monitor/monitor.js";
import { anyEvent } from "../../anyevent.js";
import { Balancer } from "../../balancer.js";
import { newClient } from "../../client/clients.js";
import { newMonitor } from "../../monitor/monitors.js";
import { startTestService, type TestService } from "../harness.js";
import { newManifest } from "../signers.js";

const SIZE = 300;
let writer: TestService;
let mirror: TestService;
let mirroring: Monitor;
beforeAll(async () => {
  writer = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  await grow(SIZE);
  const made = newMonitor(writer.url);
  mirroring = made.monitor;
  await mirroring.round();
  mirror = await startTestService({ SERVICE_DATA_DIR: made.folder.mirror, SERVICE_READ_ONLY: "on" });
});
afterAll(() => mirroring.close());

const grow = (count: number) =>
  writer.server.registry.log.append(Array.from({ length: count }, (_, i) => anyEvent({ i })));

/** Every path that names a place in the log, for a place that `size` entries do not have. */
const BEYOND: readonly (readonly [string, (size: number) => string, denial: number])[] = [
  ["an entry", (size) => `/api/v1/log/${size + 1}`, 404],
  ["the proof of an entry", (size) => `/api/v1/log/${size + 1}/proof`, 404],
  ["the proof of an entry at a size", (size) => `/api/v1/log/1/proof?tree_size=${size + 1}`, 422],
  ["the proof of a leaf", (size) => `/api/v1/log/proof/${size}`, 404],
  ["the proof of a leaf at a size", (size) => `/api/v1/log/proof/0?tree_size=${size + 1}`, 422],
  ["the head of a size", (size) => `/api/v1/log/sth/${size + 1}`, 404],
  ["a consistency proof", (size) => `/api/v1/log/consistency?from=1&to=${size + 1}`, 422],
  ["a consistency proof to the newest", (size) => `/api/v1/log/consistency?from=${size + 1}`, 422],
  ["a tile", (size) => `/api/v1/log/tile/2/0/${Math.ceil(size / 256)}`, 404],
  ["a partial tile", (size) => `/api/v1/log/tile/2/0/${Math.floor(size / 256)}.p/${(size % 256) + 1}`, 404],
  ["a tile of /tlog/", (size) => `/tlog/tile/0/00${Math.floor(size / 256)}.p/${(size % 256) + 1}`, 404],
  ["a bundle", (size) => `/tlog/tile/entries/00${Math.floor(size / 256)}.p/${(size % 256) + 1}`, 404],
  ["a tile far away", () => "/tlog/tile/0/x001/x001/001", 404],
];

describe("a place beyond the end of a node", () => {
  test("is not denied by a mirror, which says that it is behind, and how far; the service that writes denies it", async () => {
    const size = await writer.entryCount();
    const answers = BEYOND.map(async ([what, path]) => {
      const { status, body, headers } = await mirror.send("GET", path(SIZE));
      const denied = await writer.send("GET", path(size));
      return [what, status, body?.code, headers.get("retry-after"), headers.get("cairnlog-size"), denied.status];
    });
    expect(await Promise.all(answers)).toEqual(
      BEYOND.map(([what, _, denial]) => [what, 503, "behind", "1", `${SIZE}`, denial]),
    );
  });

  test("is named by every request of a client that has seen it, so none gets an older answer", async () => {
    const paths = ["/log/sth", "/log?per_page=1", "/log/heads?from=1", "/log/checkpoint", "/keys"];
    const seeing = (seen: string) =>
      Promise.all(paths.map(async (path) => (await mirror.get(path, { "cairnlog-size": seen })).body?.code));
    expect(await seeing(`${SIZE + 1}`)).toEqual(paths.map(() => "behind"));
    for (const seen of [`${SIZE}`, "no number"]) expect(await seeing(seen)).not.toContain("behind");
  });
});

describe("a request for more than a node has", () => {
  const NOTHING = "not even asked";
  /** A node with one route, which answers with its size. */
  function node(role: { leads: boolean; isStale: boolean; confirmations: number } | null) {
    const log = { size: 7 };
    const row = {
      reached: ({ query }: Context) => (query as { size: number }).size <= log.size,
      handle: () => log.size,
    };
    const reach = new ReplicaLag(log, role).before(row as unknown as Route);
    const ask = async (size: number, seen = "") =>
      Promise.resolve(reach.handle({ query: { size }, request: { seen } } as unknown as Context)).catch(
        (error: unknown) => (error instanceof HttpError ? error.code : NOTHING),
      );
    return { log, ask };
  }

  test("waits for it", async () => {
    const { log, ask } = node({ leads: false, isStale: false, confirmations: 0 });
    const asked = [ask(8), ask(1, "8")];
    await sleep(100);
    log.size = 8;
    expect(await Promise.all(asked)).toEqual([8, 8]);
  });

  test.each([
    // The first one may have been on its way when the request came.
    ["a leader that the journal has not confirmed since", true, 0, "behind"],
    ["one that it has confirmed once", true, 1, "behind"],
    ["one that it has confirmed twice", true, 2, 7],
    ["a follower", false, 2, "behind"],
  ] as const)("by %s is denied after two confirmations, and not before", async (_, leads, confirmations, answer) => {
    const role = { leads, isStale: false, confirmations: 5 };
    const asked = node(role).ask(8);
    for (let n = 0; n < confirmations; n++) {
      await sleep(100);
      role.confirmations++;
    }
    expect(await asked).toBe(answer);
  });

  test("is never denied by a mirror", async () => {
    expect(await node(null).ask(8)).toBe("behind");
  });
});

test("through a balancer nobody who reads from all nodes accuses the log", async () => {
  // Reads go to both in turn. The mirror is more than a second behind.
  const balancer = await Balancer.before((turn, method) => (method !== "GET" || turn % 2 ? writer.url : mirror.url));
  const stop = new AbortController();
  const copying = (async () => {
    while (!stop.signal.aborted) {
      await mirroring.round();
      await sleep(200);
    }
  })();
  const watching = newMonitor(balancer.url);
  try {
    for (let i = 0; i < 3; i++) {
      // Each knows nothing of what others have seen.
      const { client } = newClient(balancer.url, { publicOrigin: writer.url });
      const { title, content_hash } = newManifest().document;
      const { receipt } = await client.attest({ title, content_hash });
      expect((await client.log.entry(receipt.log_entry_id)).entry.entry_hash).toBe(receipt.entry_hash);
      expect((await client.log.head())!.tree_size).toBeGreaterThan(receipt.leaf_index);
      await watching.monitor.round({ audit: true });
    }
  } finally {
    stop.abort();
    await copying;
    await watching.monitor.close();
    balancer.close();
  }
});
