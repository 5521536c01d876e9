/** Every source file that makes timers, connections, threads or processes is named by a row, or is listed with the reason why it has none. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { BACKGROUND_ROWS } from "./background.js";
import { FOLLOWING_ROWS } from "./following.js";
import { SERVING_ROWS } from "./serving.js";
import { SIGNING_ROWS } from "./signers.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAKES =
  /\b(?:setTimeout|setInterval|createConnection|createServer|createTlsServer|spawn|fork|httpRequest|sleep|timer)\(|\bnew (?:Worker|MessageChannel|Piscina|Driver|Agent)\(/;
/** What a call waits with: a timer that it ends itself, and nothing that is there before or after it. */
const OF_A_CALL = "its timers are those of one call";
/** A process that serves one command: its end takes with it whatever there is. */
const OF_A_PROCESS = "server/cli/";
const POSTGRES = "test/journal/postgres starts, stops and cuts servers";
/** Without a row, and why. */
const WITHOUT: Readonly<Record<string, string>> = {
  "engine/journal/postgres/connection.ts": POSTGRES,
  "engine/journal/postgres/journal.ts": POSTGRES,
  "engine/journal/postgres/servers.ts": POSTGRES,
  "engine/journal/postgres/tail.ts": POSTGRES,
  "engine/log/apply/memory.ts": "ends with the first failure, until the next start",
  "engine/store/postings/merge.ts": "test/store/postings fails writes of runs under it",
  "server/client/base/http.ts": OF_A_CALL,
  "server/client/signing/receipts.ts": OF_A_CALL,
  "server/front/worker.ts": "a thread that ends with the first failure",
  "server/http/app.ts": "its timer is that of one close",
  "server/http/observing/metrics.ts": OF_A_CALL,
  "server/process/stderr.ts": "of the process: test/server/http/stderr.test.ts fails it and has it recover",
  "server/http/replica-lag.ts": "one look at the start",
  "server/http/servers/node/connection.ts": "lingers once, with a connection that is being closed",
  "server/http/servers/node/serving.ts": "the row of a service over node opens and closes its server",
  "server/http/transport/freeport.ts": "closes its server before it answers",
  "server/opening/operator.ts": "waits for the signer at the start",
  "server/replication/replication.ts": "test/server/replication kills nodes and servers",
};

const makers = ["engine", "server"].flatMap((folder) =>
  readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: "utf8" })
    .map((path) => `${folder}/${path}`)
    .filter((path) => path.endsWith(".ts") && ![OF_A_PROCESS, "server/explorer/"].some((rule) => path.startsWith(rule)))
    .filter((path) => MAKES.test(readFileSync(`${ROOT}/${path}`, "utf8"))),
);

test("a file that holds what may be left behind has a row, or is known to have none", () => {
  const rows = [...SIGNING_ROWS, ...BACKGROUND_ROWS, ...FOLLOWING_ROWS, ...SERVING_ROWS].flatMap(({ files }) => files);
  // The pool's threads are made in a library.
  const named = new Set([...rows, "engine/crypto/pool/pool.ts"]);
  expect(makers.filter((file) => !named.has(file)).sort()).toEqual(Object.keys(WITHOUT).sort());
});
