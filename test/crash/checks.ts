/**
 * The checks after a crash: of the data directory, read by this build's engine while no service runs, and of the
 * restarted service, as a monitor sees it. Each check returns a sentence for every problem.
 */
import { join } from "node:path";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openRegistry, type Registry } from "#cairnlog/engine/registry/registry.js";
import type { TableName } from "#cairnlog/engine/store/schema/schema.js";
import { type Entry, type InclusionProof, type TreeHead, verifyInclusion } from "#cairnlog/engine/verify/index.js";
import type { JsonObject } from "#cairnlog/engine/verify/json/shape.js";
import { createClient, memoryStore } from "#cairnlog/server/client/index.js";
import { holding } from "../backup/bytes.js";
import type { Random } from "../reliability/random.js";
import type { Connection } from "./connection.js";
import type { Acknowledged, Ledger } from "./ledger.js";

/**
 * Maximum number of entries for which state is rebuilt after every crash. A larger log is rebuilt after every tenth.
 */
const REBUILT = 5_000;
/** Number of older receipts that are checked in one round. */
const SAMPLE = 1_000;
const PREDICATE_BASE = "https://x-service.example/predicates";
/** Bounds of all keys of a table whose keys begin with a text. */
const ALL: [string, string] = ["", "~"];

const json = (value: unknown): string => JSON.stringify(value);

/** The data that a reader of the log remembers from one crash to the next. */
export class Memory {
  /** Entry hash and head of every leaf that was ever read from disk. */
  readonly #seen: string[] = [];
  readonly #requests = new Map<unknown, { readonly id: number; readonly asker: unknown }>();
  readonly #notifications = new Set<string>();
  #checked = 0;
  #round = 0;
  /** The entry that ended the log, once it was found on disk. */
  #end: number | null = null;

  get entries(): number {
    return this.#seen.length;
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  /**
   * Checks the data directory. `isThorough`: everything that was ever acknowledged, instead of new changes and a
   * sample.
   */
  async checkDisk(dataDir: string, ledger: Ledger, random: Random, isThorough: boolean): Promise<string[]> {
    const onDisk = checkErased(dataDir, ledger, isThorough);
    if (onDisk.length) return onDisk;
    const pool = createPool(1);
    const operator = openOperatorKey(join(dataDir, "operator.pem"), pool);
    let registry: Registry;
    try {
      // What is withheld is the service's to take from the disk.
      const options = {
        path: join(dataDir, "log"),
        operator,
        pool,
        predicateBase: PREDICATE_BASE,
        keepsWithheld: true,
      };
      registry = await openRegistry(options);
    } catch (error) {
      await pool.close();
      return [`the log does not open: ${(error as Error).message}`];
    }
    try {
      const deep = isThorough || this.#round++ % 10 === 0 || registry.log.size < REBUILT;
      const report = await registry.log.verify();
      return [
        ...report.errors.map((error) => `log verify: ${json(error)}`),
        ...(deep ? registry.log.stateDifferences().map((difference) => `rebuilt state: ${difference}`) : []),
        ...this.#checkHistory(registry, operator.fingerprint, ledger, deep),
        ...this.#checkReceipts(registry, ledger, random, isThorough),
        ...checkRows(registry, ledger),
        ...checkDeliveries(registry, ledger),
        ...checkCounts(registry),
        ...this.#checkEnd(registry, ledger),
      ];
    } catch (error) {
      return [`the log cannot be read: ${(error as Error).stack}`];
    } finally {
      await registry.close();
      await pool.close();
    }
  }

  /** Checks that nothing known has changed, that nothing refused is present, and that notifications fit the entries. */
  #checkHistory({ log }: Registry, operator: string, ledger: Ledger, deep: boolean): string[] {
    const problems: string[] = [];
    if (log.size < this.#seen.length) problems.push(`the log has shrunk from ${this.#seen.length} to ${log.size}`);
    const from = deep ? 0 : Math.max(0, this.#seen.length - REBUILT);
    const known = this.#seen.length;
    for (let index = from; index < log.size; index++) {
      const entry = log.entry(index + 1);
      const head = log.treeHead(index + 1);
      if (!entry || !head) {
        problems.push(`entry ${index + 1} ${entry ? "has no head" : "is missing"}`);
        continue;
      }
      const identity = `${entry.entry_hash} ${json(head)}`;
      if (index < known) {
        if (this.#seen[index] !== identity) problems.push(`entry ${index + 1} or its head is not what it was`);
      } else {
        this.#seen.push(identity);
        problems.push(...this.#readNew(entry, log.entry(index + 2), operator, ledger));
      }
    }
    const held = log.rows("notifications", ["", 0], ["~", 0]);
    const found = new Set(held.map(({ key: [fingerprint, id], row }) => `${fingerprint} ${id} ${row.kind}`));
    for (const wanted of this.#notifications) if (!found.has(wanted)) problems.push(`notification missing: ${wanted}`);
    for (const there of found) if (!this.#notifications.has(there)) problems.push(`notification of nothing: ${there}`);
    return problems;
  }

  #readNew(
    { id, event_type, payload: shown }: Entry,
    next: Entry | undefined,
    operator: string,
    ledger: Ledger,
  ): string[] {
    const problems: string[] = [];
    const payload: JsonObject = shown ?? {};
    for (const value of [payload.document_hash, payload.fingerprint])
      if (typeof value === "string" && ledger.refused.has(value)) problems.push(`entry ${id} is of what was refused`);
    const { request_id, requester_fingerprint: asker, target_fingerprint: target } = payload;
    if (event_type === "attestation_request") {
      this.#requests.set(request_id, { id, asker });
      if (payload.policy_entry_id === null) this.#notifications.add(`${target} ${id} attestation_request`);
      else if (next?.payload?.request_id !== request_id || next?.payload?.responder_fingerprint !== operator)
        problems.push(`request ${id} was declined by a policy, and its answer is not beside it`);
    }
    if (event_type === "attestation_request_response")
      this.#notifications.add(`${this.#requests.get(request_id)?.asker} ${id} attestation_request_declined`);
    return problems;
  }

  /** Checks that a log whose end was acknowledged, or found, has ended there, and that nothing is behind it. */
  #checkEnd({ log }: Registry, { end }: Ledger): string[] {
    this.#end ??= end ?? log.frozen?.entry_id ?? null;
    if (this.#end === null || (log.frozen?.entry_id === this.#end && log.size === this.#end)) return [];
    return [`entry ${this.#end} was the end, and the log has ${log.size} entries and is frozen by ${json(log.frozen)}`];
  }

  #checkReceipts({ log }: Registry, ledger: Ledger, random: Random, isThorough: boolean): string[] {
    const { entries } = ledger;
    const fresh = entries.slice(this.#checked);
    const old = entries.slice(0, this.#checked);
    this.#checked = entries.length;
    const sample = isThorough ? old : Array.from({ length: Math.min(SAMPLE, old.length) }, () => random.pick(old));
    return [...fresh, ...sample].flatMap((receipt) => {
      const entry = log.entry(receipt.log_entry_id);
      const head = receipt.sth ? log.treeHead(receipt.sth.tree_size) : null;
      return differences(receipt, entry, head, ledger);
    });
  }
}

/** Titles that are searched for in one round, besides the newest. */
const SOUGHT = 20;

/** What was withheld before a start must be on the disk no more: its files, byte by byte, before anybody opens them again. */
export function checkErased(dataDir: string, { erased, asked }: Ledger, isThorough: boolean): string[] {
  const sought = (isThorough ? erased : erased.slice(-SOUGHT)).map(
    (id) => [`${id}`, Buffer.from(asked.get(id)!)] as const,
  );
  return holding(join(dataDir, "log"), Object.fromEntries(sought)).map(
    (found) => `the payload of an entry that was withheld before a start is on the disk: ${found}`,
  );
}

function differences(
  receipt: Acknowledged,
  entry: Entry | undefined,
  head: TreeHead | null,
  { asked, withheld }: Ledger,
): string[] {
  const { log_entry_id: id, leaf_index, entry_hash, sth, says } = receipt;
  if (!entry) return [`entry ${id} was acknowledged and is not there`];
  const problems: string[] = [];
  if (entry_hash !== undefined && entry.entry_hash !== entry_hash)
    problems.push(`entry ${id} is not the acknowledged one`);
  if (leaf_index !== undefined && leaf_index !== id - 1) problems.push(`entry ${id} was said to be leaf ${leaf_index}`);
  const { payload } = entry;
  if (payload === null && !asked.has(id)) problems.push(`entry ${id} has lost its payload`);
  if (payload !== null && withheld.has(id)) problems.push(`entry ${id} was withheld, and is shown`);
  for (const [name, value] of Object.entries(payload === null ? {} : says))
    if (json(payload![name]) !== json(value)) problems.push(`entry ${id} has another ${name} than was sent`);
  if (sth && json(head) !== json(sth)) problems.push(`the head of size ${sth.tree_size} is not the acknowledged one`);
  return problems;
}

/** Checks acknowledged private rows, and the rows that belong to them. */
function checkRows({ log }: Registry, ledger: Ledger): string[] {
  const problems: string[] = [];
  for (const { table, key, row } of ledger.rows) {
    const found = log.row(table, key as never) as Record<string, unknown> | undefined;
    const name = `${table} ${json(key)}`;
    if (!row) {
      if (found) problems.push(`${name} was removed and is there`);
    } else if (!found) problems.push(`${name} was acknowledged and is not there`);
    else
      for (const [member, value] of Object.entries(row))
        if (json(found[member]) !== json(value))
          problems.push(`${name} has ${member} ${json(found[member])}, not ${json(value)}`);
  }
  return problems;
}

/**
 * Checks that no delivery was lost: of what the endpoint has not received, each is in the outbox, or behind the cursor of its
 * subscription.
 */
function checkDeliveries({ log }: Registry, { webhook, told, delivered }: Ledger): string[] {
  if (webhook === null) return [];
  const walked = Math.max(log.row("counters", "webhook-walk")?.last ?? 0, log.row("webhooks", webhook)?.since ?? 0);
  const cursor = log.row("webhookCursors", webhook)?.next ?? walked;
  const lost = told.filter(
    (id) => !delivered.has(id) && log.leafIndexOf(id)! < cursor && !log.row("outbox", [webhook, id]),
  );
  return lost.map((id) => `the webhook was not told of entry ${id}, and nobody means to`);
}

/** Checks that rows that are written together exist together. */
function checkCounts({ log }: Registry): string[] {
  const problems: string[] = [];
  const tally = <T extends TableName>(table: T, start: unknown, end: unknown) => {
    const counts = new Map<string, number>();
    for (const { key } of log.rows(table, start as never, end as never)) {
      const owner = String((key as readonly unknown[])[0]);
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    return counts;
  };
  const compare = (what: string, rows: Map<string, number>, counted: Map<string, number>) => {
    for (const owner of new Set([...rows.keys(), ...counted.keys()]))
      if ((rows.get(owner) ?? 0) !== (counted.get(owner) ?? 0))
        problems.push(`${what} ${owner}: ${rows.get(owner) ?? 0} rows, counted as ${counted.get(owner) ?? 0}`);
  };
  const counts = (rows: readonly { key: unknown; row: { count: number } }[]) =>
    new Map(rows.map(({ key, row }) => [String(key), row.count]));
  const numbers = [
    [0, 0],
    [Number.MAX_SAFE_INTEGER, 0],
  ] as const;
  compare("outbox", tally("outbox", ...numbers), counts(log.rows("outboxCounts", 0, Number.MAX_SAFE_INTEGER)));
  compare("inbox", tally("notifications", ["", 0], ["~", 0]), counts(log.rows("inboxes", ...ALL)));
  const names = new Set(log.rows("userNames", ...ALL).map(({ row }) => row.user_id));
  const credentials = log.rows("credentials", ["", ""], ["~", ""]);
  const owners = new Set(credentials.map(({ key: [user] }) => user));
  for (const { key } of log.rows("users", ...ALL))
    if (!names.has(key) || !owners.has(key)) problems.push(`user ${key} has no name or no credential`);
  for (const {
    key: [user],
    row,
  } of credentials)
    if (log.row("credentialKeys", row.key_fingerprint)?.user_id !== user)
      problems.push(`credential ${row.id} is not filed`);
  return problems;
}

/** A monitor. It pins the operator key, and trusts a head only if it is consistent with the last one. */
export class Monitor {
  readonly #store = memoryStore();
  readonly #operatorKey: string;
  #read = 0;

  constructor(operatorKey: string) {
    this.#operatorKey = operatorKey;
  }

  /** Reads all new entries, and requests acknowledged entries with their proofs. */
  async check(service: Connection, ledger: Ledger, random: Random): Promise<string[]> {
    const { entries } = ledger;
    const problems: string[] = [];
    const client = createClient({ server: service.url, operatorKey: this.#operatorKey, store: this.#store });
    try {
      for await (const { id } of client.log.since(this.#read)) this.#read = id;
    } catch (error) {
      return [`the monitor: ${(error as Error).message}`];
    }
    const report = await service.send("/log/verify", {});
    if (!report.valid) problems.push(`POST /log/verify: ${json(report.errors.slice(0, 3))}`);
    const ids = new Set(entries.map(({ log_entry_id }) => log_entry_id));
    if (report.entry_count < ids.size)
      problems.push(`${report.entry_count} entries, but ${ids.size} were acknowledged`);
    const sample = [
      ...entries.slice(-20),
      ...Array.from({ length: Math.min(20, entries.length) }, () => random.pick(entries)),
    ];
    for (const receipt of sample) {
      const get = (path: string) => service.send(path, null, { method: "GET" });
      const entry: Entry = await get(`/log/${receipt.log_entry_id}`);
      const size = receipt.sth?.tree_size;
      const head: TreeHead | null = size === undefined ? null : await get(`/log/sth/${size}`);
      problems.push(...differences(receipt, entry, head, ledger).map((problem) => `served: ${problem}`));
      const leafIndex = receipt.log_entry_id - 1;
      const proof: InclusionProof = await get(
        `/log/proof/${leafIndex}${size === undefined ? "" : `?tree_size=${size}`}`,
      );
      const sth = receipt.sth ?? proof.sth!;
      const holds = verifyInclusion({
        leaf: entry.entry_hash,
        leafIndex,
        treeSize: sth.tree_size,
        auditPath: proof.audit_path,
        rootHash: sth.root_hash,
        treeVersion: sth.tree_version,
      });
      if (!holds) problems.push(`the proof of entry ${receipt.log_entry_id} does not hold`);
    }
    return problems;
  }
}
