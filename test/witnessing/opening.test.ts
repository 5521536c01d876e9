/** What `/tlog/` does before and after those who remember the log have spoken. */
import { createHash, generateKeyPairSync } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, expect, test } from "vitest";
import type { CairnlogError } from "#cairnlog/engine/base/error.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { completeSettings, tlogCheckpointPath } from "#cairnlog/server/settings/settings.js";
import { openTlog } from "#cairnlog/server/tlog/tlog.js";
import { openTestLog } from "../log/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { waitInstead } from "../timers.js";
import { checkpointOf, newNoteSigner } from "../verify/note/notes.js";

const ORIGIN = "log.example/tlog";
const note = { event_type: "note", payload: {} };
/** Of the key that signs the checkpoints. */
const PAIR = generateKeyPairSync("ed25519");
const OPERATOR = operatorKey(PAIR.privateKey.export({ type: "pkcs8", format: "pem" }).toString());
const logger = pino({ level: "silent" });
const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Somebody who is asked. */
async function asked(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  ends.push(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A log of three entries, and how its checkpoints are opened. */
async function scene(more: Parameters<typeof completeSettings>[0], changed: Partial<LogWriter> = {}) {
  const { log } = await openTestLog();
  await log.append([note, note, note]);
  const dataDir = temporaryFolder();
  const settings = { ...completeSettings({ dataDir, tlogOrigin: ORIGIN, ...more }), checkpointIntervalSeconds: 0.01 };
  const refuted: CairnlogError[] = [];
  const shown = new Proxy(log, {
    get(of, name) {
      if (name in changed) return changed[name as keyof LogWriter];
      const value = Reflect.get(of, name);
      return typeof value === "function" ? value.bind(of) : value;
    },
  });
  const open = async (told: string | null = null) => {
    const parts = { log: shown, operator: OPERATOR, logName: "log.example", settings, logger, told };
    const tlog = await openTlog({ ...parts, refuted: (error) => void refuted.push(error) });
    ends.push(() => tlog.stop());
    return tlog;
  };
  return { log, file: tlogCheckpointPath(dataDir), refuted, open };
}

test("nothing is signed while those who remember the log are asked", async () => {
  const seen: boolean[] = [];
  const mirror = await asked((_, response) => {
    // Longer than a checkpoint takes.
    setTimeout(() => {
      seen.push(existsSync(file));
      response.writeHead(404).end();
    }, 200);
  });
  const { file, open } = await scene({ mirrors: [mirror] });
  const tlog = await open();
  expect(seen).toEqual([false]);
  await expect.poll(() => tlog.size).toBe(3);
});

test("nothing is published any more when one of them shows later that the log was set back", async () => {
  const { log: newer } = await openTestLog();
  for (let n = 0; n < 5; n++) await newer.append(note);
  const head = JSON.stringify(newer.treeHead());
  let isThere = false;
  const mirror = await asked((_, response) => void response.writeHead(isThere ? 200 : 503).end(head));
  const { log, refuted, open, file } = await scene({ mirrors: [mirror] });
  // Those that did not answer are asked again soon.
  waitInstead((ms) => (ms === 15_000 ? 20 : ms));
  const other = await scene({});
  const [tlog, control] = [await open(), await other.open()];
  await expect.poll(() => [tlog.size, control.size]).toEqual([3, 3]);
  isThere = true;
  await expect.poll(() => refuted.map(({ code }) => code)).toEqual(["corrupt-log"]);
  const before = readFileSync(file, "utf8");
  await log.append(note);
  // Another log has published twice since.
  for (const size of [4, 5]) {
    await other.log.append(note);
    await expect.poll(() => control.size).toBe(size);
  }
  expect(readFileSync(file, "utf8")).toBe(before);
});

test.each(["newest", "first"])(
  "a checkpoint that the %s key of the log has signed shows that it was set back",
  async (which) => {
    const pairs = { newest: PAIR, first: generateKeyPairSync("ed25519") };
    const signer = newNoteSigner(ORIGIN, 1, pairs[which as keyof typeof pairs]);
    const chain = [pairs.first, pairs.newest].map(({ publicKey }) => ({
      algorithm: "ed25519",
      public_key: publicKey.export({ type: "spki", format: "pem" }),
    }));
    const root = createHash("sha256").update("another tree").digest();
    const witness = newNoteSigner("witness.example", 4);
    const url = await asked((request, response) => {
      response.writeHead(request.method === "GET" ? 200 : 500).end(signer.note(checkpointOf(ORIGIN, 9, root)));
    });
    const witnesses = join(temporaryFolder(), "policy.txt");
    writeFileSync(witnesses, `witness W ${witness.vkey} ${url}\nquorum W\n`);
    const { open } = await scene({ witnesses }, { operators: { chain } } as never);
    await expect(open()).rejects.toMatchObject({ code: "corrupt-log" });
  },
);

test("a node that leads is not of another log than its last leader told; what the log has not signed says nothing", async () => {
  const root = createHash("sha256").update("another tree").digest();
  const said = checkpointOf(ORIGIN, 3, root);
  const { open } = await scene({});
  await expect(open(newNoteSigner(ORIGIN, 1, PAIR).note(said))).rejects.toMatchObject({ code: "corrupt-log" });
  for (const told of ["nothing", newNoteSigner(ORIGIN).note(said)]) {
    const tlog = await open(told);
    await expect.poll(() => tlog.size).toBe(3);
    expect(tlog.checkpoint()).not.toBe(told);
    await tlog.stop();
  }
});
