/** Reads a log like an embedding program: it opens the data directory once, reads now and then, and is killed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openLogReader } from "#cairnlog/engine/index.js";

const dataDir = process.argv[2]!;
const operatorKey = readFileSync(join(dataDir, "operator.pub.pem"), "utf8");
const log = await openLogReader({ path: join(dataDir, "log"), operatorKey });
for (;;) {
  log.refresh();
  log.entry(log.size);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
}
