/** Data directories with rows in every table, and functions that change their files directly. */
import { randomUUID } from "node:crypto";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, open } from "lmdb";
import type { Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { checkLog, type LogCheckOptions, type LogCheckReport } from "#cairnlog/engine/log/check/fsck.js";
import { rebuildLog } from "#cairnlog/engine/log/check/repair.js";
import type { Transaction } from "#cairnlog/engine/log/state/commands.js";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { PRIVATE_CHECKS } from "#cairnlog/engine/registry/privatechecks.js";
import { openRegistry } from "#cairnlog/engine/registry/registry.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { anyEvent } from "../anyevent.js";
import { runIn } from "../log/inline.js";
import { nodeSigner, registration, type WrittenRegistry } from "../registry/world.js";

const BASE = "https://x-service.example/predicates";

const folders: string[] = [];
export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** An empty directory, removed by `removeFolders`. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-fsck-"));
  folders.push(folder);
  return folder;
}

/** A copy of the data directory of a stopped service. */
export function copyOf(dataDir: string): string {
  const copy = join(newFolder(), "data");
  cpSync(dataDir, copy, { recursive: true });
  return copy;
}

/** The registry of a data directory, with its operator key. */
export function openData(dataDir: string, pool: Pool): Promise<WrittenRegistry> {
  const operator = openOperatorKey(join(dataDir, "operator.pem"));
  writeFileSync(join(dataDir, "operator.pub.pem"), operator.public.pem);
  return openRegistry({ path: join(dataDir, "log"), operator, pool, predicateBase: BASE });
}

const notes = (count: number): EventInput[] =>
  Array.from({ length: count }, (_, i) => anyEvent({ text: `note ${i}`, tags: [`tag${i}`] }));

/** Appends events that make derived rows of every kind, and `more` entries. */
export async function appendEveryKind({ keys, log }: WrittenRegistry, more: number): Promise<void> {
  const signers = [nodeSigner(), nodeSigner(), nodeSigner()];
  for (const [i, signer] of signers.entries()) await keys.register(registration(signer, `holder ${i}`));
  const [one, two] = signers.map(({ fingerprint }) => fingerprint) as [string, string];
  const pair = { endorser_key_fingerprint: one, endorsed_key_fingerprint: two };
  const terms = { category: "x-service:human_attestation", valid_until: null } as const;
  const offer = { ...pair, ...terms, institutional_metadata: null, external_identifiers: null };
  const { log_entry_id: offer_entry_id } = await log.append(eventOf("endorsement_offer", offer));
  const request_id = randomUUID();
  await log.append([
    eventOf("endorsement_acceptance", { ...offer, offer_entry_id, note: null }),
    eventOf("endorser_revocation_alert", {
      endorser_key_fingerprint: one,
      compromised_key_fingerprint: two,
      reason: "lost",
      evidence: null,
    }),
    eventOf("attestation_request", {
      request_id,
      requester_fingerprint: one,
      target_fingerprint: two,
      attestation_type: "authorship",
      nonce: randomUUID(),
      intent_statement: null,
      claims: {},
      deadline: "2040-01-01T00:00:00Z",
      status: "open",
      policy_entry_id: null,
    }),
    eventOf("request_policy", {
      target_fingerprint: two,
      predicates: { any: [] },
      default_action_on_failure: "decline",
      effective_from: "2025-01-01T00:00:00Z",
    }),
    {
      event_type: `${BASE}/authorship/v1`,
      payload: {
        attestation_id: randomUUID(),
        attestation_type: "authorship",
        signer_key_fingerprint: one,
        document_hash: `sha256:${"ab".repeat(32)}`,
        manifest_hash: "cd".repeat(32),
        document_title: "A title",
        signature_algorithm: "ed25519",
        signature: "AA==",
        intent_statement: null,
        timestamp: "2025-01-01T00:00:00.000000Z",
        tags: [],
      },
    },
  ]);
  for (let left = more; left > 0; left -= 512) await log.append(notes(Math.min(512, left)));
}

/** Rows in every private table, as the registry would have written them. */
export async function addPrivateRows({ log }: WrittenRegistry): Promise<void> {
  const { fingerprint } = nodeSigner();
  const [user, credential] = [randomUUID(), randomUUID()];
  const created_at = "2025-01-01T00:00:00.000000Z";
  await runIn(log, (transaction: Transaction) => {
    const put: Transaction["put"] = (table, key, row) => transaction.put(table, key, row);
    const recovery_hash = "$argon2id$r";
    put("users", user, { id: user, display_name: "Ada", email: "ada@example.org", created_at, recovery_hash });
    put("userNames", "ada", { user_id: user });
    put("credentials", [user, credential], {
      id: credential,
      user_id: user,
      key_fingerprint: fingerprint,
      credential_type: "software",
      device_label: "laptop",
      hardware_root: null,
      status: "active",
      created_at,
      revoked_at: null,
    });
    put("credentialKeys", fingerprint, { user_id: user, credential_id: credential });
    put("passwords", fingerprint, { hash: "$argon2id$p" });
    const policy = "{}";
    put("trustConfigs", 1, { fingerprint, status: "superseded", created_at, policy });
    put("trustConfigs", 2, { fingerprint, status: "active", created_at, policy });
    put("trustConfigHeads", fingerprint, { id: 2 });
    put("trustConfigHeads", "", { id: 2 });
    const request_id = randomUUID();
    for (const id of [1, 2])
      put("notifications", [fingerprint, id], { kind: "attestation_request", request_id, created_at, read: id === 1 });
    put("inboxes", fingerprint, { count: 2 });
    put("byteBudgets", -1, { windows: [-1, 1_735_689_600, 300] });
    put("byteBudgets", 7, { windows: [16_391, 1_735_689_600, 100, 7, 1_735_689_600, 200] });
    put("quotas", ["request-policy", fingerprint], { started_at: created_at, used: 3 });
    put("webhooks", 7, {
      url: "https://example.org/hook",
      events: ["key.registered"],
      key_fingerprint: null,
      document_hash: null,
      secret: "a secret of sixteen and more",
      owner_fingerprint: fingerprint,
      healthy: true,
      retry_count: 0,
      next_probe_at: null,
      created_at,
    });
    put("counters", "webhook", { last: 7 });
    put("counters", "webhook-walk", { last: 1 });
    put("webhookCursors", 7, { next: 1 });
    put("outbox", [7, 1], { event: "key.registered", attempt: 0, next_attempt_at: null, created_at });
    put("outboxCounts", 7, { count: 1 });
    put("withheldTerms", "0f".repeat(17), { leaf_index: 3 });
  });
  await log.signHead();
  const proof = Buffer.from("a proof \0 of bytes");
  await log.anchors.replace(log, 3, undefined, { proof, status: "pending", isSettled: false });
  await log.anchors.replace(log, 5, undefined, { proof, status: "confirmed", isSettled: true });
}

/** The data directory of a stopped service, with rows in every table and some `more` entries. */
export async function buildData(pool: Pool, more: number): Promise<string> {
  const dataDir = newFolder();
  const registry = await openData(dataDir, pool);
  await appendEveryKind(registry, more);
  await addPrivateRows(registry);
  await registry.close();
  return dataDir;
}

type Change = (table: (name: string) => Database, bytes: (name: string) => Database<Buffer>) => Promise<unknown>;

/** Opens the tables of a closed log for changes, as decoded records and as bytes. */
export const tamper = (dataDir: string, change: Change) => changeTables(join(dataDir, "log"), change);

/** Opens the tables of a closed log's postings for changes. */
export const tamperPostings = (dataDir: string, change: Change) =>
  changeTables(join(dataDir, "log", "postings"), change);

async function changeTables(path: string, change: Change): Promise<void> {
  const env = open({ path, maxDbs: 50, mapSize: 2 ** 30 });
  const bytes = (name: string) => env.openDB({ name, encoding: "binary" }) as Database<Buffer>;
  await change((name) => env.openDB({ name }), bytes);
  await env.flushed;
  await env.close();
}

async function withStore<T>(
  dataDir: string,
  pool: Pool,
  work: (store: ReturnType<typeof openStore>, options: LogCheckOptions) => Promise<T>,
): Promise<T> {
  const path = join(dataDir, "log");
  const operatorKey = openOperatorKey(join(dataDir, "operator.pem")).public.pem;
  const store = openStore({ path });
  try {
    return await work(store, { path, operatorKey, projection, privateChecks: PRIVATE_CHECKS, pool });
  } finally {
    await store.close();
  }
}

export const check = (dataDir: string, pool: Pool, more: Partial<LogCheckOptions> = {}): Promise<LogCheckReport> =>
  withStore(dataDir, pool, (store, options) => checkLog(store, { ...options, ...more }));

/** Checks the log, rebuilds its derived data, and checks again. */
export const rebuild = (dataDir: string, pool: Pool, signal?: AbortSignal): Promise<LogCheckReport> =>
  withStore(dataDir, pool, async (store, options) =>
    rebuildLog(store, await checkLog(store, options), signal ? { ...options, signal } : options),
  );

export const sentences = ({ differences }: LogCheckReport): string[] => differences.map(({ message }) => message);
