// Opens damaged logs, one after the other, and prints the results: a line of JSON before and after each. LMDB may end
// this process with a signal. The last line then says which log it was.
import { createInterface } from "node:readline";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { openLog, openLogReader } from "#cairnlog/engine/log/log.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";

const pool = createPool(1);

/** Reads everything. @returns sentences about the faults */
async function read(log) {
  const { errors } = await log.verify();
  if (errors.length) return errors.map(({ message }) => message);
  return log.stateDifferences();
}

async function used(log, work) {
  try {
    return await work();
  } finally {
    await log.close();
  }
}

const OPENERS = {
  async writer(path, key, event) {
    const log = await openLog({ path, signer: openOperatorKey(key), pool, projection });
    return used(log, async () => {
      await log.append(event);
      return { size: log.size, wrong: await read(log) };
    });
  },
  async reader(path, key) {
    const { pem } = openOperatorKey(key).public;
    const log = await openLogReader({ path, operatorKey: pem, pool, projection });
    return used(log, async () => ({ size: log.size, wrong: await read(log) }));
  },
  async backup(path, key) {
    const operatorKey = openOperatorKey(key).public.pem;
    const { manifest } = await backUp({ path, to: `${path}.backup`, operatorKey });
    return { size: manifest.tree_size, wrong: [] };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { opener, path, key, event } = JSON.parse(line);
  console.log(JSON.stringify({ begins: path }));
  try {
    console.log(JSON.stringify(await OPENERS[opener](path, key, event)));
  } catch (error) {
    const code = error instanceof CairnlogError ? error.code : null;
    console.log(JSON.stringify({ code, message: error.message }));
  }
}
await pool.close();
