/** Every source file that makes timers, connections, threads or processes is named by a row, or is listed as one without. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { BACKGROUND_ROWS } from "./background.js";
import { SIGNING_ROWS } from "./signers.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAKES =
  /\b(?:setTimeout|setInterval|createConnection|createServer|createTlsServer|spawn|fork|httpRequest|sleep|timer)\(|\bnew (?:Worker|MessageChannel|Piscina|Driver|Agent)\(/;
/** Without a row, so far. What gets a row leaves this list; a new file gets one. */
const WITHOUT: readonly string[] = [
  "engine/journal/postgres/connection.ts",
  "engine/journal/postgres/journal.ts",
  "engine/journal/postgres/servers.ts",
  "engine/journal/postgres/tail.ts",
  "engine/log/apply/title-backlog.ts",
  "engine/log/clockguard.ts",
  "engine/log/published.ts",
  "engine/log/reader.ts",
  "engine/log/write/sequencer.ts",
  "engine/registry/slices.ts",
  "engine/store/lmdb/gate.ts",
  "engine/store/postings/pace.ts",
  "server/anchoring/upgrades.ts",
  "server/cli/log/log.ts",
  "server/cli/log/monitor.ts",
  "server/cli/log/receipt.ts",
  "server/cli/log/webhook-listen.ts",
  "server/cli/log/witness.ts",
  "server/cli/operate/fsck.ts",
  "server/cli/operate/parent.ts",
  "server/cli/operate/serve.ts",
  "server/cli/operate/stopping.ts",
  "server/cli/patience.ts",
  "server/cli/replication/promote.ts",
  "server/client/http.ts",
  "server/client/signing/receipts.ts",
  "server/closing.ts",
  "server/front/thread.ts",
  "server/front/threads.ts",
  "server/front/worker.ts",
  "server/http/app.ts",
  "server/http/observing/metrics.ts",
  "server/http/observing/stderr.ts",
  "server/http/reach.ts",
  "server/http/transport/node/connection.ts",
  "server/http/transport/node/serving.ts",
  "server/http/transport/uploads.ts",
  "server/mirror.ts",
  "server/monitor/patience.ts",
  "server/operator.ts",
  "server/replication/replication.ts",
  "server/replication/tlog.ts",
  "server/webhooks/schedule.ts",
];

const makers = ["engine", "server"].flatMap((folder) =>
  readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: "utf8" })
    .map((path) => `${folder}/${path}`)
    .filter((path) => path.endsWith(".ts") && !path.startsWith("server/explorer/"))
    .filter((path) => MAKES.test(readFileSync(`${ROOT}/${path}`, "utf8"))),
);

test("a file that holds what may be left behind has a row, or is known to have none", () => {
  const rows = [...SIGNING_ROWS, ...BACKGROUND_ROWS].flatMap(({ files }) => files);
  // The pool's threads are made in a library.
  const named = new Set([...rows, "engine/crypto/pool/pool.ts"]);
  expect(makers.filter((file) => !named.has(file)).sort()).toEqual([...WITHOUT].sort());
});
