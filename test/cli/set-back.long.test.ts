/** A log that was set back: its data directory knows of more than it holds. Whatever would go on with it would sign a fork. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { anyEvent } from "../anyevent.js";
import { startTestService } from "../server/harness.js";
import { scratchFolder } from "../service.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());
let count = 0;
let data: string;
const own = (name: string) => join(data, name);
const pem = generatePrivateKey("ed25519");

beforeEach(async () => {
  data = join(scratch.path, `${++count}`);
  mkdirSync(data);
  writeFileSync(own("operator.pem"), pem, { mode: 0o600 });
  const log = await openLog({ path: own("log"), signer: operatorKey(pem), projection });
  await log.append([0, 1, 2].map(() => anyEvent({})));
  await log.close();
});

const head = { tree_size: 9, root_hash: "ab".repeat(32), signature: "", key_id: "", tree_version: 2 };
const [root, signature] = [32, 68].map((length) => Buffer.alloc(length).toString("base64"));
const note = `log.example/tlog\n9\n${root}\n\n— log.example/tlog ${signature}\n`;

/** Files, each with the newest that was shown of a log of nine entries. */
const SHOWN = {
  "published.json": JSON.stringify({ ...head, timestamp: "2026-01-01T00:00:00.000000Z" }),
  "tlog-checkpoint.txt": note,
  "tlog-cosigned.txt": note,
};

/** What each of them that goes on with the log says, and whether it has done its work. */
const ACTS: Record<string, () => Promise<[isDone: boolean, said: string]>> = {
  async start() {
    return startTestService({ SERVICE_DATA_DIR: data }).then(
      async (service) => {
        await service.close();
        return [true, ""];
      },
      (error: Error) => [false, error.message],
    );
  },
  async rotation() {
    const newFile = own("new.pem");
    writeFileSync(newFile, generatePrivateKey("ecdsa-p256"));
    const { stderr } = await cairnlog(["operator", "rotate", "--to", newFile, "--data", data]);
    return [readFileSync(own("operator.pem"), "utf8") !== pem, stderr];
  },
  async end() {
    const { code, stderr } = await cairnlog(["operator", "freeze", "--reason", "moved", "--data", data]);
    return [code === 0, stderr];
  },
  /** Other nodes go on with what is in the journal. */
  async "beginning of a journal"() {
    const { stderr } = await cairnlog(["replicate", "init", "--data", data], {
      SERVICE_REPLICATION: "postgres://nobody@127.0.0.1:9/none",
      SERVICE_REPLICATION_VERIFY: "engine",
    });
    return [stderr.includes("PostgreSQL does not answer"), stderr];
  },
  async check() {
    const { code, stdout } = await cairnlog(["fsck", "--data", data]);
    return [code === 0, stdout];
  },
};

const FILES = Object.keys(SHOWN) as (keyof typeof SHOWN)[];
const table = Object.keys(ACTS).flatMap((act) => FILES.map((file) => [act, file] as const));

test.each(table)("no %s when %s has more than the log", async (act, file) => {
  writeFileSync(own(file), SHOWN[file]);
  expect(await ACTS[act]!()).toEqual([false, expect.stringMatching(/(has|of) 9( entries)?\b/)]);
});

test.each(Object.keys(ACTS))("the %s goes on when nothing more was shown", async (act) => {
  expect(await ACTS[act]!()).toEqual([true, expect.any(String)]);
});
