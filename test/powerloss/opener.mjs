// Opens states of a disk, one after the other, and reports what is there: one line of JSON before and one after each. A state
// may end this process with a signal; then the last line says which one.
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const dist = process.argv[2];
const from = (file) => import(pathToFileURL(join(dist, file)).href);
const { startServer, readSettings } = await from("server/index.js");
const { failurePath, operatorKeyPath, operatorPublicKeyPath, publishedHeadPath } =
  await from("server/settings/settings.js");
const { checkAfterFailure } = await from("server/failure.js");
const { openOperatorKey } = await from("engine/crypto/signer/operator-key.js");
const { createPool } = await from("engine/crypto/pool/pool.js");
const { checkFiles, withFiles } = await from("engine/log/check/files.js");
const { checkLog } = await from("engine/log/check/fsck.js");
const { PublishedHead, readPublishedHead } = await from("engine/log/tlog/published.js");
const { PRIVATE_CHECKS } = await from("engine/registry/privatechecks.js");
const { openRegistry } = await from("engine/registry/registry.js");
const { projection } = await from("engine/registry/events/projection.js");
const { closeToOthers } = await from("engine/store/lmdb/private.js");
const { openStore } = await from("engine/store/store.js");

const SETTINGS = {
  PORT: "0",
  LOG_LEVEL: "silent",
  SERVICE_OTS_CALENDARS: "",
  SERVICE_RATE_LIMITS: "off",
  SERVICE_WORKERS: "1",
  SERVICE_EXPLORER: "off",
  SERVICE_MIN_FREE_BYTES: "0",
};
const { publicKey } = generateKeyPairSync("ed25519");
const KEY = {
  public_key: publicKey.export({ type: "spki", format: "pem" }),
  pseudonym: "Afterwards",
  key_algorithm: "ed25519",
};
const pool = createPool(1);

/** What `cairnlog fsck` does, in this process. @returns sentences */
async function fsck(dataDir, operatorKey) {
  const path = join(dataDir, "log");
  const files = checkFiles(path);
  if (files.log !== "sound" || files.postings !== "sound") return files.differences.map(({ message }) => message);
  const store = openStore({ path });
  try {
    const published = readPublishedHead(join(dataDir, "published.json"));
    const options = { path, operatorKey, published, projection, privateChecks: PRIVATE_CHECKS, pool };
    return withFiles(await checkLog(store, options), files).differences.map(({ message }) => message);
  } finally {
    await store.close();
  }
}

/** What a start of the service does with the data directory, without HTTP and with the threads that are there: faster by far. */
async function startLog(settings) {
  const { dataDir, predicateBase, minFreeBytes } = settings;
  closeToOthers(dataDir);
  const operator = openOperatorKey(operatorKeyPath(settings), pool);
  writeFileSync(operatorPublicKeyPath(dataDir), operator.public.pem);
  const registry = await openRegistry({ path: join(dataDir, "log"), operator, pool, predicateBase, minFreeBytes });
  try {
    await checkAfterFailure(failurePath(dataDir), registry.log, { warn: () => {} });
    new PublishedHead(publishedHeadPath(dataDir), registry.log).check();
  } catch (error) {
    await registry.close();
    throw error;
  }
  return { registry, operatorFingerprint: operator.fingerprint, close: () => registry.close() };
}

/** Starts on a state as the service is started after a power failure, and reads everything. */
async function look({ dataDir, settings, rows, isService }) {
  const read = readSettings({ ...SETTINGS, ...settings, SERVICE_DATA_DIR: dataDir });
  const server = await (isService ? startServer(read) : startLog(read));
  let found;
  let operatorKey;
  try {
    const { log } = server.registry;
    operatorKey = readFileSync(join(dataDir, "operator.pub.pem"), "utf8");
    const entries = Array.from({ length: log.size }, (_, index) => JSON.parse(log.entryJsonAt(index).toString()));
    const { errors } = await log.verify();
    found = {
      operator: server.operatorFingerprint,
      entries: entries.map(({ id, entry_hash, payload }) => ({ id, entry_hash, payload })),
      heads: entries.map((_, index) => log.treeHead(index + 1)),
      rows: rows.map(([table, key]) => log.row(table, key) ?? null),
      wrong: errors.map(({ message }) => message),
    };
    // It can go on, too, unless it has ended.
    const next = await server.registry.keys.register(KEY).catch((error) => error);
    const hasEnded = entries.at(-1)?.event_type === "log_frozen";
    const [has, should] = hasEnded ? [next.code, "frozen"] : [next.leaf_index, entries.length];
    if (has !== should) found.wrong.push(`the next entry is leaf ${has}, not ${should}: ${next.stack}`);
  } finally {
    await server.close();
  }
  found.wrong.push(...(await fsck(dataDir, operatorKey)).map((sentence) => `fsck: ${sentence}`));
  return found;
}

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  console.log(JSON.stringify({ begins: task.dataDir }));
  let answer;
  try {
    answer = await look(task);
  } catch (error) {
    answer = { refused: error.stack };
  }
  console.log(JSON.stringify(answer));
}
await pool.close();
process.exit(0);
