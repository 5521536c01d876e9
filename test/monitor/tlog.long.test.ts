/** What a monitor makes of the checkpoints at `/tlog/`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { checkpointText, noteKeyId, parsePublicKey, signedNote } from "#cairnlog/engine/verify/index.js";
import type { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { caught, hastyFetch, newMonitor } from "./monitors.js";

const dataDir = temporaryFolder();
let service: TestService;
/** The checkpoint at `/api/v1/log/checkpoint` when the log had five entries. */
let early: string;
beforeAll(async () => {
  service = await startTestService({ SERVICE_DATA_DIR: dataDir, SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  const { log } = service.server.registry;
  await log.append(Array.from({ length: 5 }, (_, i) => anyEvent({ i })));
  early = (await service.send("GET", "/api/v1/log/checkpoint")).text;
  await log.append(Array.from({ length: 295 }, (_, i) => anyEvent({ i })));
  await service.checkpointed(300);
});

/** A monitor to which the service's checkpoint at a path is this text. */
const monitorOf = (checkpoint: string, path = "/tlog/checkpoint", folder?: MonitorFolder) => {
  const fetcher = hastyFetch();
  return newMonitor(service.url, {
    ...(folder && { folder }),
    fetch: async (input, init) => (String(input).endsWith(path) ? new Response(checkpoint) : fetcher(input, init)),
  });
};

/** What a node answers that has less than the asker has seen. */
function behind(): Response {
  const problem = { type: "about:blank", title: "Behind", status: 503, detail: "Not yet.", code: "behind" };
  return Response.json(problem, { status: 503, headers: { "content-type": "application/problem+json" } });
}

const kept = (mirror: string, file = "tlog-checkpoint.txt") => readFileSync(join(mirror, file), "utf8");

test.each([
  ["/tlog/checkpoint", "tlog-checkpoint.txt", () => signed(0, EMPTY_ROOT)],
  ["/api/v1/log/checkpoint", "checkpoint.txt", async () => early],
])(
  "the newest one at %s is kept beside the copy, and an older one does not take its place",
  async (path, file, old) => {
    const { monitor, folder } = newMonitor(service.url);
    await monitor.round();
    const newest = (await service.send("GET", path)).text;
    expect(kept(folder.mirror, file)).toBe(newest);
    await monitor.close();
    // It is no lie: a cache may have kept it. Whoever has nothing newer takes it.
    const older = await old();
    const [again, first] = [monitorOf(older, path, folder), monitorOf(older, path)];
    for (const { monitor } of [again, first]) {
      await monitor.round();
      await monitor.close();
    }
    expect(kept(folder.mirror, file)).toBe(newest);
    expect(kept(first.folder.mirror, file)).toBe(older);
  },
);

test("a node that has less than the checkpoint that another one has shown is waited for, in the first round, too", async () => {
  const old = (await service.get("/log/sth/5")).body;
  const fetcher = hastyFetch();
  const { monitor, folder } = newMonitor(service.url);
  await monitor.round();
  await monitor.close();
  for (const known of [undefined, folder]) {
    let isBehind = true;
    const late = newMonitor(service.url, {
      ...(known && { folder: known }),
      fetch: async (input, init) => {
        if (!isBehind || !String(input).endsWith("/log/sth")) return fetcher(input, init);
        isBehind = false;
        const seen = Number(new Headers(init?.headers).get("cairnlog-size"));
        return seen > old.tree_size ? behind() : Response.json(old);
      },
    });
    await late.monitor.round();
    expect([isBehind, late.monitor.size]).toEqual([false, 300]);
    await late.monitor.close();
  }
});

const EMPTY_ROOT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** A checkpoint by the operator, of this log or of another one. */
async function signed(treeSize: number, rootHash: string, of?: string): Promise<string> {
  const operator = operatorKey(readFileSync(join(dataDir, "operator.pem"), "utf8"));
  const origin = (await service.send("GET", "/tlog/vkey")).text.split("+")[0]!;
  const text = checkpointText({ origin: of ?? origin, treeSize, rootHash });
  const [signature] = await operator.sign([Buffer.from(text)]);
  return signedNote(text, origin, noteKeyId(origin, parsePublicKey(operator.public.pem)), signature!);
}

test.each([300, 299])("one of %i entries with another root than these is a fork, whatever is kept", async (size) => {
  const note = await signed(size, "ab".repeat(32));
  const { monitor: honest, folder } = newMonitor(service.url);
  await honest.round();
  await honest.close();
  for (const known of [undefined, folder]) {
    const { monitor } = monitorOf(note, "/tlog/checkpoint", known);
    const evidence = await caught(
      monitor.round(),
      "fork",
      new RegExp(`checkpoint of ${size} entries at /tlog/, signed by \\S+, has another root`),
    );
    expect(evidence.checkpoint).toBe(note);
    await monitor.close();
  }
});

test("one that is ahead of the entries waits, and what is no checkpoint of the log and its key is passed over", async () => {
  const ahead = await signed(301, "ab".repeat(32));
  const another = await signed(299, "ab".repeat(32), "other.example");
  const own = (await service.send("GET", "/tlog/checkpoint")).text;
  for (const text of [
    ahead,
    another,
    "<html>",
    "",
    own.replace("\n300\n", "\n299\n"),
    own.replace(/\n\u2014 .*\n$/, "\n"),
  ]) {
    const { monitor, folder } = monitorOf(text);
    await monitor.round();
    expect(() => kept(folder.mirror)).toThrow("ENOENT");
    await monitor.close();
  }
});

test.each([403, 410])("a service that answers %i for its checkpoints has none", async (status) => {
  const fetcher = hastyFetch();
  const { monitor, folder } = newMonitor(service.url, {
    fetch: async (input, init) =>
      String(input).endsWith("/checkpoint") ? new Response("<Error/>", { status }) : fetcher(input, init),
  });
  await monitor.round();
  expect(() => kept(folder.mirror)).toThrow("ENOENT");
  await monitor.close();
});

test("one that fails when it is asked for its checkpoint is told by the path", async () => {
  const fetcher = hastyFetch();
  const { monitor } = newMonitor(service.url, {
    fetch: async (input, init) =>
      String(input).endsWith("/checkpoint") ? new Response("<html>", { status: 500 }) : fetcher(input, init),
  });
  await expect(monitor.round()).rejects.toMatchObject({ message: expect.stringContaining("/api/v1/log/checkpoint") });
  await monitor.close();
});
