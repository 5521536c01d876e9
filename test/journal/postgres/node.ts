/** Logs over real PostgreSQL servers, without a service around them. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { PostgresJournal } from "#cairnlog/engine/journal/postgres/journal.js";
import { makeJournal } from "#cairnlog/engine/journal/postgres/operate/init.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import type { Cluster } from "../../cluster/servers/cluster.js";
import { type Faults, openFaultyLog, testOperator } from "../../log/harness.js";

// A statement whose outcome nobody knows is tried for ever: a test that fails must end all the same, and soon.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
afterAll(() => vi.resetConfig());

let databases = 0;

/** A database of its own with an empty journal. @returns its connection string */
export async function newJournal(cluster: Cluster, ports?: number[]): Promise<string> {
  const database = `journal${++databases}`;
  await cluster.primary.query(`CREATE DATABASE ${database}`);
  const row = { format: FORMAT, key_id: testOperator.fingerprint, created_at: "2026-01-01T00:00:00.000000+00:00" };
  const url = cluster.url({ database, ...(ports ? { ports } : {}) });
  await makeJournal(url, { rows: [{ table: "meta", key: "log", row }], batches: [] }, false);
  return url;
}

/** Why a node that follows refuses. */
const NOT_LEADER = new CairnlogError("not-leader", "Another node writes this log now.");

/** Closed before the logs over them, which wait for what is under way. */
const journals = new Set<PostgresJournal>();
afterEach(() => {
  for (const journal of journals) journal.close();
  journals.clear();
});

/** A node: a journal, a log over it, and whether it leads. */
export class Node {
  readonly journal: PostgresJournal;
  readonly #standing: { refusal: CairnlogError | null };
  log!: LogWriter;
  path!: string;
  faults!: Faults;

  private constructor(journal: PostgresJournal) {
    this.journal = journal;
    this.#standing = { refusal: NOT_LEADER };
    journal.observeLoss = () => {
      this.#standing.refusal = NOT_LEADER;
    };
  }

  static async open(
    url: string,
    path?: string,
    options: Partial<Parameters<typeof PostgresJournal.open>[0]> = {},
  ): Promise<Node> {
    const journal = await PostgresJournal.open({ url, verification: "standby", nodeUrl: null, ...options });
    journals.add(journal);
    const node = new Node(journal);
    const replicated = { journal, standing: node.#standing };
    const opened = await openFaultyLog({ ...replicated, ...(path === undefined ? {} : { path }) });
    node.log = opened.log;
    node.path = opened.path;
    node.faults = opened.faults;
    return node;
  }

  /** Takes the lead now, whoever has it. */
  async lead(): Promise<void> {
    for (let isTaken = false; !isTaken; ) {
      const lead = await this.journal.look();
      await this.journal.checkContinues(this.log.position, lead);
      isTaken = await this.journal.takeLead(lead);
    }
    await this.log.follow();
    this.#standing.refusal = null;
  }

  /** Tells what is decided. */
  async beat(): Promise<void> {
    await this.journal.beat(null);
  }

  async close(): Promise<void> {
    this.journal.close();
    await this.log.close();
  }
}

/** Milliseconds in which a node that believes too much would have answered. */
const TOO_SOON_MS = 400;

/** What became of a promise by now. */
export async function outcome(work: Promise<unknown>): Promise<"done" | "refused" | "waits"> {
  const ended = work.then(
    () => "done" as const,
    () => "refused" as const,
  );
  return Promise.race([ended, sleep(TOO_SOON_MS, "waits" as const)]);
}
