/** A log that is started from an old snapshot, beside those who remember more of it. */
import { cpSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { parseVkey } from "#cairnlog/engine/verify/index.js";
import { Recall } from "#cairnlog/server/cosigning/recall.js";
import { openTestLog } from "../log/harness.js";
import { expectProblem, startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner, registration } from "../server/signers.js";
import { newCosignedDirectory, startCosigned } from "../witness/cosigned.js";
import { startTestWitness } from "../witness/harness.js";
import { newTree } from "../witness/logs.js";

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

const append = (service: TestService, count: number) =>
  service.server.registry.log.append(Array.from({ length: count }, () => ({ event_type: "test.event", payload: {} })));

/** A server that answers everything with this. */
async function answering(status: number, body: string): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status).end(body)).listen(0, "127.0.0.1");
  servers.push(server);
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A log of 5 entries, and its data directory when it had 2. */
async function withSnapshot(start: (dataDir: string) => Promise<TestService>, dataDir: string) {
  let service = await start(dataDir);
  await append(service, 2);
  await service.close();
  const snapshot = join(temporaryFolder(), "data");
  cpSync(dataDir, snapshot, { recursive: true });
  service = await start(dataDir);
  await append(service, 3);
  return { service, snapshot };
}

/** A log whose 5 entries a witness has cosigned, as `withSnapshot` makes it. Its service is stopped. */
async function cosigned() {
  const { dataDir, signer } = newCosignedDirectory();
  const witness = await startTestWitness([{ signer }]);
  const policy = `witness A ${witness.running.vkey} ${witness.url}\nquorum A\n`;
  const { service, snapshot } = await withSnapshot((folder) => startCosigned(folder, policy), dataDir);
  await service.checkpointed(5);
  await service.close();
  return { dataDir, snapshot, policy, witness };
}

test("a witness that has cosigned more keeps an old snapshot from starting; the newest data start", async () => {
  const { dataDir, snapshot, policy, witness } = await cosigned();
  await expect(startCosigned(snapshot, policy)).rejects.toMatchObject({
    code: "corrupt-log",
    message: expect.stringMatching(/has 2 entries.*the witness A.*has 5.*cairnlog restore/s),
  });
  const again = await startCosigned(dataDir, policy);
  await append(again, 1);
  await witness.running.close();
});

test("so does a checkpoint that a quorum has cosigned, while no witness answers", async () => {
  const { dataDir, snapshot, policy, witness } = await cosigned();
  await witness.running.close();
  // The operator has removed the other two, as the refusals said.
  for (const name of ["published.json", "tlog-checkpoint.txt"]) rmSync(join(snapshot, name));
  cpSync(join(dataDir, "tlog-cosigned.txt"), join(snapshot, "tlog-cosigned.txt"));
  await expect(startCosigned(snapshot, policy)).rejects.toMatchObject({
    code: "corrupt-log",
    message: expect.stringMatching(
      /has 2 entries, but the checkpoint in .*tlog-cosigned.txt has 5.*remove .*tlog-cosigned/s,
    ),
  });
});

test("so does a mirror or a follower that the settings name", async () => {
  const { service, snapshot } = await withSnapshot(
    (folder) => startTestService({ SERVICE_DATA_DIR: folder }),
    temporaryFolder(),
  );
  const old = startTestService({ SERVICE_DATA_DIR: snapshot, SERVICE_MIRRORS: service.url });
  await expect(old).rejects.toMatchObject({
    code: "corrupt-log",
    message: expect.stringMatching(/^The log shrank: it has 2 entries, but a head of 5 that http:.* was signed/),
  });
  // Another branch of the same length is no better.
  const fork = await startTestService({ SERVICE_DATA_DIR: snapshot });
  await append(fork, 4);
  await fork.close();
  await expect(startTestService({ SERVICE_DATA_DIR: snapshot, SERVICE_MIRRORS: service.url })).rejects.toMatchObject({
    code: "corrupt-log",
    message: expect.stringContaining("is not the one that was shown"),
  });
});

test("nobody who lies, or says nothing, keeps a log from starting; its operator is told if nobody answered", async () => {
  const other = await startTestService();
  await append(other, 5);
  const { body: head } = await other.get("/log/sth");
  const liars = await Promise.all([
    answering(200, JSON.stringify(head)),
    answering(200, "{}"),
    answering(200, "no JSON"),
    answering(500, ""),
    answering(302, ""),
  ]);
  const dataDir = temporaryFolder();
  const first = await startTestService({ SERVICE_DATA_DIR: dataDir });
  await append(first, 2);
  await first.close();
  const mirrors = [...liars, other.url, "http://127.0.0.1:9"].join(",");
  const service = await startTestService({ SERVICE_DATA_DIR: dataDir, SERVICE_MIRRORS: mirrors });
  await append(service, 1);
  const { status, body } = await service.send("GET", "/readyz");
  expect([status, body.warnings.join()]).toEqual([200, expect.stringMatching(/nobody has said whether this log/)]);
  const well = await startTestService({ SERVICE_MIRRORS: [await answering(404, ""), liars[0]].join(",") });
  expect(JSON.stringify((await well.send("GET", "/readyz")).body)).not.toContain("nobody has said");
});

test.each([{ tree_version: 1 }, { key_id: `sha256:${"0".repeat(64)}` }])(
  "a mirror that changes %j of a true head, which nobody has signed, keeps no log from starting",
  async (changed) => {
    const dataDir = temporaryFolder();
    const service = await startTestService({ SERVICE_DATA_DIR: dataDir });
    await append(service, 3);
    const { body: head } = await service.get("/log/sth");
    await service.close();
    const mirror = await answering(200, JSON.stringify({ ...head, ...changed }));
    const again = await startTestService({ SERVICE_DATA_DIR: dataDir, SERVICE_MIRRORS: mirror });
    expect(JSON.stringify((await again.send("GET", "/readyz")).body)).not.toContain("nobody has said");
    await append(again, 1);
  },
);

const OWN = newTree("log.example/tlog");

const recallOf = (sources: Partial<ConstructorParameters<typeof Recall>[0]>) =>
  new Recall({
    log: {} as never,
    origin: OWN.origin,
    keys: [parseVkey(OWN.signer.vkey)],
    witnesses: [],
    mirrors: [],
    compare: async () => new CairnlogError("corrupt-log", "The log shrank."),
    refuted: () => {},
    logger: { warn: () => {} } as never,
    ...sources,
  });

test.each([
  [404, true],
  [409, true],
  [200, false],
  [403, false],
  [503, false],
])("whether a mirror that shows no head and answers %i has answered: %s", async (status, hasAnswered) => {
  const recall = recallOf({ mirrors: [await answering(status, "")] });
  await recall.open();
  expect(recall.warnings).toHaveLength(hasAnswered ? 0 : 1);
  await recall.stop();
});

test.each<[string, string, boolean]>([
  ["the log's own checkpoint", OWN.note(9), true],
  ["one that another key has signed", newTree(OWN.origin).note(9), false],
  ["one that nobody has signed", OWN.note(9).replace(/\u2014 .*/s, ""), false],
  ["the log's signature below another size", OWN.note(9).replace("\n9\n", "\n10\n"), false],
  ["one of another log by the same key", newTree("log.example/other", OWN.signer).note(9), false],
  ["no checkpoint", "no checkpoint", false],
])("of a witness that shows %s the word counts by the log's signature alone", async (_, note, counts) => {
  const recall = recallOf({ witnesses: [{ name: "W", url: await answering(200, note) }] });
  if (counts) await expect(recall.open()).rejects.toMatchObject({ code: "corrupt-log" });
  else {
    await recall.open();
    // Who lies has said nothing, and is asked again.
    expect(recall.warnings).toHaveLength(1);
  }
  await recall.stop();
});

describe("those that did not answer at the start", () => {
  test("are asked again, and what they show then ends appends for good", async () => {
    const { log } = await openTestLog();
    for (let i = 0; i < 5; i++) await log.append({ event_type: "a", payload: {} });
    const head = JSON.stringify(log.treeHead());
    let isThere = false;
    let asked = 0;
    const server = createServer((_, response) => {
      asked++;
      response.writeHead(isThere ? 200 : 503).end(head);
    });
    servers.push(server.listen(0, "127.0.0.1"));
    await new Promise((resolve) => server.once("listening", resolve));
    const mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const refuted: CairnlogError[] = [];
    const old = { operators: log.operators, size: 2, consistencyProof: () => expect.fail() };
    const parts: ConstructorParameters<typeof Recall>[0] = {
      log: old as never,
      origin: "log.example/tlog",
      keys: [],
      witnesses: [],
      mirrors: [mirror],
      compare: async () => null,
      refuted: (error) => refuted.push(error),
      logger: { warn: () => {} } as never,
      againMs: 20,
    };
    const recall = new Recall(parts);
    await recall.open();
    expect(recall.warnings).toHaveLength(1);
    await expect.poll(() => asked).toBeGreaterThan(4);
    isThere = true;
    await expect.poll(() => refuted.map(({ code }) => code)).toEqual(["corrupt-log"]);
    await recall.stop();
  });

  test("end nothing by a head that this log has in a moment: another node may know a record before", async () => {
    const { log } = await openTestLog();
    for (let i = 0; i < 5; i++) await log.append({ event_type: "a", payload: {} });
    let looks = 0;
    const behind = {
      operators: log.operators,
      get size() {
        return ++looks < 4 ? 4 : 5;
      },
      consistencyProof: log.consistencyProof.bind(log),
    };
    const mirror = await answering(200, JSON.stringify(log.treeHead()));
    const recall = recallOf({ log: behind as never, mirrors: [mirror] });
    await recall.open();
    expect(recall.warnings).toEqual([]);
    await recall.stop();
  });

  test("end nothing while what they show cannot be compared, such as on a full disk; they are asked again", async () => {
    let compared = 0;
    const refuted: CairnlogError[] = [];
    const recall = recallOf({
      witnesses: [{ name: "W", url: await answering(200, OWN.note(9)) }],
      compare: async () => {
        if (++compared < 3) throw new CairnlogError("storage-full", "There is no room for the tree's nodes.");
        return null;
      },
      refuted: (error) => refuted.push(error),
      againMs: 20,
    });
    await recall.open();
    expect(recall.warnings).toHaveLength(1);
    await expect.poll(() => recall.warnings).toEqual([]);
    expect([compared, refuted]).toEqual([3, []]);
    await recall.stop();
  });

  test("a log that was refuted appends nothing, and is not ready", async () => {
    const service = await startTestService();
    const log = service.server.registry.log as unknown as { refute(error: CairnlogError): void };
    log.refute(new CairnlogError("corrupt-log", "The log was set back."));
    expectProblem(await service.post("/keys/register", registration(newSigner())), 500, "corrupt-log");
    const ready = await service.send("GET", "/readyz");
    expectProblem(ready, 503, "not-ready");
    expect(ready.body.detail).toBe("The log was set back.");
  });
});
