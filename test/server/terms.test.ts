/** `/tlog/` over the terms of several nodes: no client sees an older checkpoint than before, whoever leads, and whoever is silent. */
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, expect, test } from "vitest";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { completeSettings } from "#cairnlog/server/settings/settings.js";
import { NodeTlog } from "#cairnlog/server/tlog/replicated.js";
import { type OpenedTlog, openTlog } from "#cairnlog/server/tlog/tlog.js";
import { openTestLog, testOperator } from "../log/harness.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { temporaryFolder } from "./harness.js";

const note = { event_type: "note", payload: {} };
const logger = pino({ level: "silent" });
const [ORIGIN, WITNESS] = ["log.example/tlog", newNoteSigner("witness.example", 4)];
const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A witness that cosigns everything, while it is awake. */
const witness = { isAwake: true, url: "" };
async function startWitness(): Promise<void> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      if (!witness.isAwake) return void response.writeHead(503).end();
      if (request.method === "GET") return void response.writeHead(404).end();
      const text = `${body.slice(body.indexOf("\n\n") + 2).split("\n\n")[0]}\n`;
      response.end(WITNESS.line(text, Math.floor(Date.now() / 1000)));
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  ends.push(() => server.close().closeAllConnections());
  witness.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What the nodes share: the log, and what the leader tells in the journal. */
interface Shared {
  readonly log: LogWriter;
  told: string | null;
}

/** A node with its own files. Each look at what it shows is compared with all before. */
class TestNode {
  readonly #shared: Shared;
  readonly #settings: Parameters<typeof openTlog>[0]["settings"];
  readonly #node: NodeTlog;
  #opened: OpenedTlog | null = null;
  #seen = 0;

  constructor(shared: Shared, witnesses: string | null) {
    this.#shared = shared;
    const given = { dataDir: temporaryFolder(), tlogOrigin: ORIGIN, ...(witnesses === null ? {} : { witnesses }) };
    this.#settings = { ...completeSettings(given), checkpointIntervalSeconds: 0.01 };
    const [published, told] = [() => this.#opened, () => shared.told];
    this.#node = new NodeTlog({ log: shared.log, vkey: () => null, published, told, logger });
    ends.push(() => this.end());
    this.#node.start();
  }

  /** Size of the checkpoint that it shows; 0 for none. */
  async size(): Promise<number> {
    const shown = await (async () => this.#node.checkpoint())().catch(() => null);
    const size = shown === null ? 0 : Number(shown.split("\n")[1]);
    expect(size).toBeGreaterThanOrEqual(this.#seen);
    this.#seen = size;
    return size;
  }

  async lead(): Promise<void> {
    await this.#node.stop();
    const { log, told } = this.#shared;
    const parts = { log, operator: testOperator, logName: "log.example", settings: this.#settings, logger, told };
    this.#opened = await openTlog({ ...parts, refuted() {} });
  }

  /** Gives a sign of life. */
  async beat(): Promise<void> {
    const sizeOf = (note: string | null) => Number(note?.split("\n")[1] ?? 0);
    const checkpoint = await (async () => this.#opened!.checkpoint())().catch(() => null);
    if (checkpoint !== null) expect(sizeOf(checkpoint)).toBeGreaterThanOrEqual(sizeOf(this.#shared.told));
    this.#shared.told = checkpoint ?? this.#shared.told;
  }

  async end(): Promise<void> {
    await this.#opened?.stop();
    this.#opened = null;
    await this.#node.stop();
  }

  async follow(): Promise<void> {
    await this.end();
    this.#node.start();
  }
}

// A leader and the next one: who has led before, or never.
test.each([
  ["without witnesses", false],
  ["with a witness that is silent after some terms", true],
])("%s, what is shown and what is told only grows", async (_, hasWitness) => {
  if (hasWitness) await startWitness();
  const policy = join(temporaryFolder(), "policy.txt");
  writeFileSync(policy, `witness W ${WITNESS.vkey} ${witness.url}\nquorum W\n`);
  const shared: Shared = { log: (await openTestLog()).log, told: null };
  const newNode = () => new TestNode(shared, hasWitness ? policy : null);
  const nodes = [newNode(), newNode(), newNode()];
  let size = 0;
  for (const [leader, added, isAwake] of [
    [0, 2, true],
    [1, 300, true],
    [0, 5, false],
    [2, 300, false],
    [1, 0, false],
    [2, 7, true],
  ] as const) {
    const [node, others] = [nodes[leader]!, nodes.filter((_, at) => at !== leader)];
    witness.isAwake = isAwake;
    await node.lead();
    // At once, before anybody has cosigned or even signed anything in this term.
    expect(await node.size()).toBeGreaterThanOrEqual(size);
    await node.beat();
    // Those that follow make the nodes of what they are told now and then.
    if (leader === 1) for (const other of others) await expect.poll(() => other.size(), { interval: 20 }).toBe(size);
    await shared.log.append(Array.from({ length: added }, () => note));
    if (isAwake || !hasWitness) size = shared.log.size;
    await expect.poll(() => node.size(), { interval: 5 }).toBe(size);
    await node.beat();
    await node.follow();
    expect(await node.size()).toBe(size);
  }
});
