/** Compares what clients were told, what PostgreSQL has and what the nodes have. */
import { setTimeout as sleep } from "node:timers/promises";
import { formatTimestamp } from "#cairnlog/engine/log/state/clock.js";
import type { TreeHead } from "#cairnlog/engine/verify/index.js";
import type { Node } from "../rig/node.js";
import type { Rig } from "../rig/rig.js";
import { DATABASE } from "../servers/cluster.js";
import type { PostgresServer } from "../servers/server.js";
import { tryAhead } from "./ahead.js";
import { askRunning, askStopped, compareServers } from "./copies.js";
import type { Facts } from "./facts.js";
import { Records } from "./records.js";
import { searchRefused } from "./refused.js";
import { compareNode, type JournalState, privateRowsOf, sequenceOf } from "./replica.js";

const PATIENCE_MS = 120_000;
/** Sentences shown of one kind. */
const SHOWN = 5;

export class Judge {
  readonly #rig: Rig;
  readonly #facts: Facts;
  #journal = new Records();
  /** Leaves that were compared with the nodes. */
  #compared = 0;
  /** Records that were compared with all servers. */
  #comparedRecords = 0;
  #checkedReceipts = 0;
  /** Refused records that were searched for, by their hashes. */
  readonly #searched = new Set<string>();

  constructor(rig: Rig, facts: Facts) {
    this.#rig = rig;
    this.#facts = facts;
  }

  get records(): number {
    return this.#journal.hashes.length;
  }

  get epochs(): number {
    return this.#journal.epoch;
  }

  /** Number of entries that the journal has. */
  async sizeOfJournal(): Promise<number> {
    return Number(await this.#ask(this.#rig.cluster.primary, "SELECT size FROM cairnlog.lead"));
  }

  /** Reads the records that were not read yet, of whatever the nodes have made. @returns what is wrong with them */
  newRecords(): Promise<string[]> {
    return this.#journal.read(this.#rig.cluster.primary);
  }

  /** Compares what is new since the last call. The load must have ended, and the nodes must have caught up. */
  async newFacts(): Promise<string[]> {
    const { nodes, cluster } = this.#rig;
    const { primary } = cluster;
    const problems = await this.#journal.read(primary);
    const { length } = this.#journal.leaves;
    problems.push(...(await this.#settle(nodes)));
    const read = async (): Promise<JournalState> => {
      const rows = await privateRowsOf(primary);
      problems.push(...(await this.#journal.read(primary)));
      return { records: this.#journal, rows };
    };
    for (const node of nodes) problems.push(...(await compareNode(node, read, this.#compared)));
    const { rows } = await read();
    // Whatever was recorded since may be on no node yet. It is compared the next time.
    this.#compared = length;
    problems.push(
      ...(await compareServers(this.#rig, this.#comparedRecords)),
      ...this.#compareReceipts(),
      ...this.#compareHeads(),
    );
    problems.push(...this.#compareDocuments(), ...this.#compareRows(rows.lines));
    this.#comparedRecords = this.records;
    problems.push(...(await searchRefused(this.#rig, this.#searched)));
    return problems;
  }

  /** Compares everything once more, from the beginning, and has the nodes checked by their own commands. */
  async everything(): Promise<string[]> {
    this.#journal = new Records();
    this.#compared = this.#comparedRecords = this.#checkedReceipts = 0;
    const problems = await this.newFacts();
    problems.push(...(await searchRefused(this.#rig)));
    const before = this.records;
    const asked = await askRunning(this.#rig);
    // A takeover may have come meanwhile.
    problems.push(...asked.problems, ...(await this.#journal.read(this.#rig.cluster.primary)));
    if (asked.records.some((count) => count < before || count > this.records))
      problems.push(`invariant 10: replicate check finds ${asked.records.join(", ")} records, not ${this.records}`);
    // Both at once, so that neither takes over from the other.
    await Promise.all(this.#rig.nodes.map((node) => node.kill()));
    problems.push(...(await askStopped(this.#rig, this.#journal.leaves.length)));
    return [...problems, ...(await tryAhead(this.#rig))];
  }

  async #ask(server: PostgresServer, sql: string): Promise<string> {
    return (await server.query(sql, DATABASE))[0]?.[0] ?? "";
  }

  /** Waits until every node has applied the newest record. What is wrong may be the reason why one never does. */
  async #settle(nodes: readonly Node[]): Promise<string[]> {
    for (const until = Date.now() + PATIENCE_MS; ; await sleep(50)) {
      const newest = Number(await this.#ask(this.#rig.cluster.primary, "SELECT sequence FROM cairnlog.lead"));
      const applied = await Promise.all(nodes.map(sequenceOf));
      if (applied.every((sequence) => sequence === newest)) return [];
      if (Date.now() > until) return [`The nodes have applied ${applied.join(" and ")} records of ${newest}.`];
    }
  }

  /** When a standby had shown each record, or one that comes after it: it has all that comes before, too. */
  #shownAt(): Float64Array {
    const { hashes } = this.#journal;
    const times = new Float64Array(hashes.length);
    let first = Number.POSITIVE_INFINITY;
    const { shownAt, markedAt } = this.#rig.tap;
    const never = Number.POSITIVE_INFINITY;
    for (let i = hashes.length - 1; i >= 0; i--) {
      first = Math.min(first, shownAt.get(hashes[i]!) ?? never, markedAt.get(i + 1) ?? never);
      times[i] = first;
    }
    return times;
  }

  #compareReceipts(): string[] {
    const problems: string[] = [];
    const fresh = [...this.#facts.receipts].slice(this.#checkedReceipts);
    const shownAt = this.#shownAt();
    for (const [document, { leaf_index, log_entry_id, entry_hash }] of fresh) {
      const leaf = this.#journal.leaves[leaf_index];
      const shown = shownAt[this.#journal.recordOf[leaf_index]! - 1]!;
      if (leaf && shown > this.#facts.answeredAt.get(document)!)
        problems.push(`invariant 7: entry ${log_entry_id} was answered before a standby had shown it`);
      if (leaf?.entryHash !== entry_hash || leaf.document !== document)
        problems.push(
          `invariant 2: entry ${log_entry_id} was acknowledged and ${leaf ? "is another one" : "is not there"}`,
        );
    }
    this.#checkedReceipts = this.#facts.receipts.size;
    return problems.slice(0, SHOWN);
  }

  /** Heads that were shown are those that are there, to the byte. */
  #compareHeads(): string[] {
    const problems: string[] = [];
    for (const [size, shown] of this.#facts.heads) {
      const head = this.#journal.leaves[size - 1]?.head;
      const told = JSON.parse(shown) as TreeHead;
      const isIt =
        head?.root_hash === told.root_hash &&
        head.signature === told.signature &&
        formatTimestamp(head.micros) === told.timestamp;
      if (!isIt) problems.push(`invariant 1: size ${size} was shown with another head than it has: ${shown}`);
    }
    return problems.slice(0, SHOWN);
  }

  #compareDocuments(): string[] {
    const { documents } = this.#journal;
    const wrong = [...this.#facts.refused].filter((document) => documents.has(document));
    return wrong.slice(0, SHOWN).map((document) => `${document} was refused and is on the log`);
  }

  #compareRows(rows: readonly string[]): string[] {
    const there = new Set(
      rows.map((line) => {
        const [table, key] = JSON.parse(line) as [string, unknown];
        return `${table} ${JSON.stringify(key)}`;
      }),
    );
    const problems = this.#facts.rows.flatMap(({ table, key, isThere }) => {
      if (isThere === null || there.has(`${table} ${key}`) === isThere) return [];
      return [`invariant 2: ${table} ${key} was ${isThere ? "acknowledged and is not there" : "deleted and is there"}`];
    });
    return problems.slice(0, SHOWN);
  }
}
