/**
 * A front end that crashes is replaced: the service goes on, nothing that was acknowledged is lost, and only its own clients
 * notice. The crash is an exception in its thread, thrown by a module that the test has Node load there.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, expect, test } from "vitest";
import { cairnlog, startService } from "../../service.js";
import { temporaryFolder } from "../harness.js";
import { newManifest, newSigner, submission, type TestSigner } from "../signers.js";
import { type SlowClient, slowClient, until } from "../sockets.js";
import { Connection, connectToEach, frontOf } from "./connections.js";

const folder = mkdtempSync(join(tmpdir(), "cairnlog-crash-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Throws in the front end that is first to find the file, out of nowhere; and at the next look at the certificate, if the file
 * `unreadable` is beside it. The process gets no next thread, if the file `threadless` is there.
 */
const BOMB = `
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import threads, { workerData } from "node:worker_threads";
const { existsSync, readFileSync, unlinkSync } = fs;
const isFirst = (file) => {
  if (!existsSync(file)) return false;
  try {
    unlinkSync(file);
    return true;
  } catch {
    return false;
  }
};
if (workerData?.sharedState) {
  setInterval(() => {
    if (isFirst(process.env.BOMB_FILE)) throw new Error("out of nowhere");
  }, 10).unref();
  fs.readFileSync = (path, ...options) => {
    if (path === process.env.SERVICE_TLS_CERT && isFirst(process.env.BOMB_FILE.replace(/bomb$/, "unreadable")))
      throw new Error("no file can be opened");
    return readFileSync(path, ...options);
  };
} else {
  const { Worker } = threads;
  threads.Worker = class extends Worker {
    constructor(...given) {
      if (isFirst(process.env.BOMB_FILE.replace(/bomb$/, "threadless"))) throw new Error("the system has no thread left");
      super(...given);
    }
  };
}
syncBuiltinESMExports();
`;

/** Attests over connections of its own until told to stop; a connection that breaks is replaced. */
function load(url: string, connections: number) {
  const receipts: { readonly log_entry_id: number; readonly entry_hash: string }[] = [];
  const signer = newSigner();
  let [isOver, broken] = [false, 0];
  const work = async (_: unknown, number: number) => {
    let connection = new Connection(url);
    for (let n = 0; !isOver; n++) {
      try {
        const made = await connection.post("/attestations", submission(signer, newManifest(`${number} ${n}`)));
        if (made.status !== 200) throw new Error(`answered ${made.status}: ${made.text}`);
        receipts.push(made.body);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === undefined) throw error;
        broken++;
        connection = new Connection(url);
      }
    }
    connection.close();
  };
  const done = Promise.all(Array.from({ length: connections }, work));
  return {
    receipts,
    async stop() {
      isOver = true;
      await done;
      return broken;
    },
  };
}

/** The two front ends that answer. */
async function frontsOf(url: string): Promise<string[]> {
  const fronts = [];
  for (const connection of await connectToEach(url, 2)) {
    fronts.push(frontOf(await connection.get("/health")));
    connection.close();
  }
  return fronts;
}

/** A service with two front ends, one of which crashes when the file `bomb` is written. */
async function startMined(environment: NodeJS.ProcessEnv = {}, more: Parameters<typeof startService>[2] = {}) {
  const module = join(folder, "bomb.mjs");
  const bomb = join(folder, "bomb");
  writeFileSync(module, BOMB);
  const mined = {
    SERVICE_FRONT_ENDS: "2",
    SERVICE_TRANSPORT: "uws",
    LOG_LEVEL: "silent",
    BOMB_FILE: bomb,
    NODE_OPTIONS: `--import ${module}`,
    ...environment,
  };
  const service = await startService(temporaryFolder(), mined, more);
  return { service, bomb };
}

test("what front ends had counted when they crashed is in the sums once, crash after crash", async () => {
  const { service, bomb } = await startMined();
  const signer = newSigner();
  /** The counters of two routes; each front end has answered some of them. */
  const counted = async () => {
    const connection = new Connection(service.url);
    const { text } = await connection.send("GET", "/metrics");
    connection.close();
    return text
      .split("\n")
      .filter((line) =>
        /^cairnlog_(http_requests_total|http_request_duration_seconds_count|refusals_total)\{/.test(line),
      )
      .filter((line) => /attestations"|not-found/.test(line))
      .sort();
  };
  for (let crash = 0; crash < 3; crash++) {
    const each = await connectToEach(service.url, 2);
    for (const [n, connection] of each.entries()) {
      expect((await connection.post("/attestations", submission(signer, newManifest(`${crash} ${n}`)))).status).toBe(
        200,
      );
      expect((await connection.get("/log/999999")).status).toBe(404);
      connection.close();
    }
    const before = await counted();
    expect(before.filter((line) => line.startsWith("cairnlog_http_requests_total")).join()).toContain(
      `status="200"} ${2 * (crash + 1)}`,
    );
    const old = await frontsOf(service.url);
    writeFileSync(bomb, "");
    const others = async () => (await frontsOf(service.url)).filter((front) => !old.includes(front)).length;
    await expect.poll(() => others().catch(() => null)).toBe(1);
    expect(await counted()).toEqual(before);
  }
  expect(await service.stop()).toBe(0);
});

test("the connections of a front end that crashed are given back, and those of the other one still count", async () => {
  const LIMIT = 8;
  const { service, bomb } = await startMined({ SERVICE_MAX_CONNECTIONS: `${LIMIT}` });
  const open = new Map<SlowClient, string>();
  const isOpen = ({ socket }: SlowClient) => !socket.destroyed;
  /** @returns whether the service took one more connection */
  const connect = async () => {
    const client = await slowClient(service.url, "GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => client.received().includes("\r\n\r\n") || !isOpen(client));
    const front = /^x-request-id: (.{23})/m.exec(client.received())?.[1];
    if (front !== undefined) open.set(client, front);
    return front !== undefined;
  };
  const fronts = () => new Set(open.values());
  const fill = async () => {
    while (open.size < LIMIT) await until(connect);
    // Each front end has some of them, or others take the place of one.
    while (fronts().size < 2) {
      const [first] = open.keys();
      first!.socket.destroy();
      open.delete(first!);
      await until(connect);
    }
  };
  for (let crash = 0; crash < 3; crash++) {
    await fill();
    expect(await connect()).toBe(false);
    const old = fronts();
    writeFileSync(bomb, "");
    await until(() => ![...open.keys()].every(isOpen));
    for (const client of [...open.keys()].filter((one) => !isOpen(one))) open.delete(client);
    expect(fronts().size).toBe(1);
    const [stays] = fronts();
    // The other one takes what there is room for, until there is another in the place of the one that crashed.
    await fill();
    expect([...fronts()].filter((front) => old.has(front))).toEqual([stays]);
    expect(await connect()).toBe(false);
  }
  for (const { socket } of open.keys()) socket.destroy();
  expect(await service.stop()).toBe(0);
});

test("a front end for which the system has no thread is begun when it has one again", async () => {
  const { service, bomb } = await startMined();
  const old = await frontsOf(service.url);
  const threadless = join(folder, "threadless");
  writeFileSync(threadless, "");
  writeFileSync(bomb, "");
  const others = async () => (await frontsOf(service.url)).filter((front) => !old.includes(front)).length;
  await expect.poll(() => others().catch(() => null)).toBe(1);
  expect(existsSync(threadless)).toBe(false);
  expect(await service.stop()).toBe(0);
});

test("a front end that replaces another knows who may write by now", async () => {
  const list = join(folder, "writers");
  const [gone, comes] = [newSigner(), newSigner()];
  writeFileSync(list, `key ${gone.fingerprint}\n`);
  const { service, bomb } = await startMined({ SERVICE_WRITERS: list });
  /** What each front end answers to the two. */
  const answers = async () => {
    const all: (readonly number[])[] = [];
    for (const connection of await connectToEach(service.url, 2)) {
      const attest = async (signer: TestSigner) =>
        (await connection.post("/attestations", submission(signer, newManifest()))).status;
      all.push([await attest(gone), await attest(comes)]);
      connection.close();
    }
    return all;
  };
  writeFileSync(list, `key ${comes.fingerprint}\n`);
  service.process.kill("SIGHUP");
  await expect.poll(answers).toEqual([
    [403, 200],
    [403, 200],
  ]);
  const old = await frontsOf(service.url);
  writeFileSync(bomb, "");
  const others = async () => (await frontsOf(service.url)).filter((front) => !old.includes(front)).length;
  await expect.poll(() => others().catch(() => null)).toBe(1);
  expect(await answers()).toEqual([
    [403, 200],
    [403, 200],
  ]);
  expect(await service.stop()).toBe(0);
});

test("the only front end crashes, and another program takes its port: the service is back when that has ended", async () => {
  const { service, bomb } = await startMined({ SERVICE_FRONT_ENDS: "1", LOG_LEVEL: "error" }, { stderr: "pipe" });
  let said = "";
  service.process.stderr!.setEncoding("utf8").on("data", (text) => {
    said += text;
  });
  const port = Number(new URL(service.url).port);
  writeFileSync(bomb, "");
  const other = createServer();
  const taken = () => once(other.listen(port, "127.0.0.1"), "listening").then(() => true);
  await expect.poll(() => taken().catch(() => false), { interval: 5 }).toBe(true);
  // Another front end has been made, and could not listen.
  await expect.poll(() => said).toContain("a front end cannot start");
  other.close();
  const health = () => new Connection(service.url).get("/health").then(({ status }) => status);
  await expect.poll(() => health().catch(() => null)).toBe(200);
  expect(await service.stop()).toBe(0);
});

test("a front end that cannot read the new certificate keeps no other from it", async () => {
  const [key, certificate] = [join(folder, "served.key"), join(folder, "served.pem")];
  const make = (name: string) =>
    execFileSync(
      "openssl",
      [
        ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "30"],
        ...["-keyout", key, "-out", certificate, "-subj", `/CN=${name}`],
      ],
      { stdio: "pipe" },
    );
  make("old");
  const { service } = await startMined({ SERVICE_TLS_KEY: key, SERVICE_TLS_CERT: certificate });
  const shown = async () => {
    const socket = connect({ port: Number(new URL(service.url).port), rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    return CN;
  };
  expect(await shown()).toBe("old");
  make("new");
  writeFileSync(join(folder, "unreadable"), "");
  service.process.kill("SIGHUP");
  await expect.poll(shown, { interval: 20 }).toBe("new");
  expect(existsSync(join(folder, "unreadable"))).toBe(false);
  expect(await service.stop()).toBe(0);
});

test("told to stop just when a front end has crashed, the service makes no other in its place, and ends", async () => {
  const { service, bomb } = await startMined();
  const [connection] = await connectToEach(service.url, 1);
  writeFileSync(bomb, "");
  await until(() => !existsSync(bomb));
  expect(await service.stop()).toBe(0);
  connection!.close();
});

test("under load, a front end that crashes three times is replaced each time", async () => {
  const { service, bomb } = await startMined();
  const going = load(service.url, 12);
  const counted = async () => {
    const { text } = await new Connection(service.url).send("GET", "/metrics");
    const line = /^cairnlog_http_requests_total\{method="POST",route="\/api\/v1\/attestations",status="200"\} (\d+)$/m;
    return Number(line.exec(text)?.[1] ?? 0);
  };
  let before = 0;
  for (let crash = 1; crash <= 3; crash++) {
    const soFar = going.receipts.length;
    await expect.poll(() => going.receipts.length).toBeGreaterThan(soFar + 50);
    const shown = await counted();
    expect(shown).toBeGreaterThanOrEqual(before);
    before = shown;
    const old = await frontsOf(service.url);
    writeFileSync(bomb, "");
    // Both answer again: the one that crashed is another thread now. Until then, connections may be refused.
    const others = async () => (await frontsOf(service.url)).filter((front) => !old.includes(front)).length;
    await expect.poll(() => others().catch(() => null)).toBe(1);
    await expect.poll(async () => (await new Connection(service.url).send("GET", "/readyz")).status).toBe(200);
  }
  const broken = await going.stop();
  expect(broken).toBeGreaterThan(0);
  expect(await counted()).toBeGreaterThanOrEqual(before);
  const each = await connectToEach(service.url, 2);
  for (const [n, { log_entry_id, entry_hash }] of going.receipts.entries())
    expect((await each[n % 2]!.get(`/log/${log_entry_id}`)).body.entry_hash).toBe(entry_hash);
  const report = await each[0]!.post("/log/verify", {});
  expect(report.body).toMatchObject({ valid: true });
  for (const connection of each) connection.close();
  expect(await service.stop()).toBe(0);
});

test("a service that is told to stop under load answers what it accepted, and every front end ends", async () => {
  const dataDir = temporaryFolder();
  const environment = { SERVICE_FRONT_ENDS: "3", SERVICE_TRANSPORT: "uws" };
  const service = await startService(dataDir, environment);
  const receipts: { readonly log_entry_id: number; readonly entry_hash: string }[] = [];
  const signer = newSigner();
  const work = async (_: unknown, number: number) => {
    const connection = new Connection(service.url);
    for (let n = 0; ; n++) {
      const made = await connection
        .post("/attestations", submission(signer, newManifest(`${number} ${n}`)))
        .catch(() => null);
      if (made?.status !== 200) break;
      receipts.push(made.body);
    }
    connection.close();
  };
  const working = Promise.all(Array.from({ length: 12 }, work));
  await expect.poll(() => receipts.length).toBeGreaterThan(100);
  expect(await service.stop()).toBe(0);
  await working;
  const again = await startService(dataDir, environment);
  const connection = new Connection(again.url);
  for (const { log_entry_id, entry_hash } of receipts)
    expect((await connection.get(`/log/${log_entry_id}`)).body.entry_hash).toBe(entry_hash);
  connection.close();
  expect(await again.stop()).toBe(0);
});

test("a front end that cannot start keeps the service from starting, with a sentence", async () => {
  const module = join(folder, "keyless.mjs");
  writeFileSync(
    module,
    'import { workerData } from "node:worker_threads"; if (workerData?.sharedState) workerData.operatorKey = "no key";',
  );
  const env = {
    ...process.env,
    PORT: "0",
    SERVICE_DATA_DIR: temporaryFolder(),
    SERVICE_FRONT_ENDS: "1",
    LOG_LEVEL: "silent",
    NODE_OPTIONS: `--import ${module}`,
  };
  const { code, stdout, stderr } = await cairnlog(["serve"], { env });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^cairnlog: [A-Z][^\n]*\.\n$/);
});
