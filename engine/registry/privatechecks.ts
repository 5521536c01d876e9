/**
 * Checks that private rows agree with one another: names of accounts, credentials by key, lengths of inboxes and
 * outboxes, newest trust configurations. No entry determines these rows. A contradiction can therefore be reported, but
 * not resolved.
 */
import type { LogExtent, PrivateCheck, PrivateRows } from "../log/check/checks.js";
import type { TableName } from "../store/schema/schema.js";
import { foldName } from "./accounts/accounts.js";
import { configCount } from "./trust/commands.js";

export const PRIVATE_CHECKS: readonly PrivateCheck[] = [
  checkUsers,
  checkCredentials,
  (rows, end) => checkCounts(rows, end, "notifications", "inboxes"),
  (rows, end) => checkCounts(rows, end, "outbox", "outboxCounts"),
  checkWebhooks,
  checkTrustConfigs,
];

function* checkUsers(rows: PrivateRows): Iterable<string> {
  for (const { key, row } of rows.range("users")) {
    if (row.id !== key) yield `users ${key}: the row is that of ${row.id}.`;
    if (rows.get("userNames", foldName(row.display_name))?.user_id !== key)
      yield `users ${key}: userNames does not lead from its name to it.`;
  }
  for (const { key, row } of rows.range("userNames")) {
    const user = rows.get("users", row.user_id);
    if (!user || foldName(user.display_name) !== key)
      yield `userNames ${JSON.stringify(key)}: there is no account ${row.user_id} of this name.`;
  }
}

function* checkCredentials(rows: PrivateRows): Iterable<string> {
  for (const { key, row } of rows.range("credentials")) {
    const [user, id] = key;
    const what = `credentials ${JSON.stringify(key)}:`;
    if (row.user_id !== user || row.id !== id) yield `${what} the row is that of another one.`;
    if (!rows.get("users", user)) yield `${what} there is no such account.`;
    if (rows.get("credentialKeys", row.key_fingerprint)?.user_id !== user)
      yield `${what} credentialKeys does not lead from its key to its account.`;
  }
  for (const { key, row } of rows.range("credentialKeys"))
    if (rows.get("credentials", [row.user_id, row.credential_id])?.key_fingerprint !== key)
      yield `credentialKeys ${key}: there is no such credential of this key.`;
}

/** The number of rows of each owner, which is the first member of their keys, and the highest entry id among them. */
function* counts<T extends "notifications" | "outbox">(
  rows: PrivateRows,
  table: T,
): Iterable<{ readonly owner: string | number; readonly count: number; readonly newest: number }> {
  let owner: string | number | undefined;
  let count = 0;
  let newest = 0;
  for (const [next, id] of rows.keys(table)) {
    if (next !== owner) {
      if (owner !== undefined) yield { owner, count, newest };
      owner = next;
      count = 0;
    }
    count++;
    newest = id;
  }
  if (owner !== undefined) yield { owner, count, newest };
}

function* checkCounts(
  rows: PrivateRows,
  { lastId }: LogExtent,
  table: "notifications" | "outbox",
  countTable: "inboxes" | "outboxCounts",
): Iterable<string> {
  const stored = (owner: string | number) => rows.get(countTable as TableName, owner as never) as { count: number };
  for (const { owner, count, newest } of counts(rows, table)) {
    const said = stored(owner)?.count ?? 0;
    if (said !== count) yield `${countTable} ${owner}: ${said} are counted, but ${table} has ${count}.`;
    if (newest > lastId && !isWithoutEntry(rows, table, [owner, newest], lastId))
      yield `${table} ${owner}: it tells of entry ${newest}, but the last entry is ${lastId}.`;
  }
  for (const owner of rows.keys(countTable)) {
    const [first] = [...rows.range(table, [owner, 0], [owner, Number.MAX_SAFE_INTEGER], { limit: 1 })];
    const { count } = stored(owner);
    if (!first && count) yield `${countTable} ${owner}: ${count} are counted, but ${table} has none.`;
  }
}

/** Whether the id of a row is that of no entry: of a notification about no entry, or about one whose id was taken. */
function isWithoutEntry(rows: PrivateRows, table: TableName, key: [string | number, number], lastId: number): boolean {
  const row = table === "notifications" ? rows.get(table, key as [string, number]) : undefined;
  return row?.kind === "webhook_ended" || (row?.entry_id !== undefined && row.entry_id <= lastId);
}

function* checkWebhooks(rows: PrivateRows, { size }: LogExtent): Iterable<string> {
  const last = rows.get("counters", "webhook")?.last ?? 0;
  for (const id of rows.keys("webhooks"))
    if (id > last) yield `counters "webhook": ${last} is the last id given out, but there is a webhook ${id}.`;
  const walked = rows.get("counters", "webhook-walk")?.last ?? 0;
  if (walked > size) yield `counters "webhook-walk": ${walked} entries are matched, but the log has ${size}.`;
  for (const { key, row } of rows.range("webhookCursors")) {
    if (!rows.get("webhooks", key)) yield `webhookCursors ${key}: there is no webhook ${key}.`;
    if (row.next > size) yield `webhookCursors ${key}: it is at ${row.next}, but the log has ${size} entries.`;
  }
}

function* checkTrustConfigs(rows: PrivateRows): Iterable<string> {
  let last = 0;
  let count = 0;
  for (const { key, row } of rows.range("trustConfigs")) {
    count++;
    last = key;
    const newest = rows.get("trustConfigHeads", row.fingerprint)?.id ?? 0;
    if (newest < key) yield `trustConfigHeads ${row.fingerprint}: ${newest} is not the key's newest, ${key} is newer.`;
    else if (newest > key && row.status === "active") yield `trustConfigs ${key}: it is active, but not the newest.`;
  }
  const all = rows.get("trustConfigHeads", "");
  if (configCount(all) !== count)
    yield `trustConfigHeads "": ${configCount(all)} are counted, but trustConfigs has ${count}.`;
  for (const { key, row } of rows.range("trustConfigHeads"))
    if (key === "" ? row.id !== last : rows.get("trustConfigs", row.id)?.fingerprint !== key)
      yield `trustConfigHeads ${JSON.stringify(key)}: ${row.id} is not its newest configuration.`;
}
