/**
 * What one front end has answered, every other one shows, however long the writer takes from one message to the next. A module
 * that the test has Node load lets the writer's thread wait after each of its messages.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startService } from "../../service.js";
import { temporaryFolder } from "../harness.js";
import { newManifest, newSigner, submission } from "../signers.js";
import { type Connection, connectToEach } from "./connections.js";

const FRONT_ENDS = 3;
const folder = mkdtempSync(join(tmpdir(), "cairnlog-telling-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A front end that has its message can answer a client before the next one has its own. */
const SLOWLY = `
import { isMainThread, MessagePort } from "node:worker_threads";
const post = MessagePort.prototype.postMessage;
if (isMainThread)
  MessagePort.prototype.postMessage = function (message, moved) {
    post.call(this, message, moved);
    if (message?.kind === "feed") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  };
`;

test("what a client was shown by one front end, every other one has", async () => {
  const module = join(folder, "slowly.mjs");
  writeFileSync(module, SLOWLY);
  const list = join(folder, "writers");
  writeFileSync(list, `key ${newSigner().fingerprint}\n`);
  const service = await startService(temporaryFolder(), {
    ...{ SERVICE_FRONT_ENDS: `${FRONT_ENDS}`, SERVICE_TRANSPORT: "uws", SERVICE_WRITERS: list },
    NODE_OPTIONS: `--import ${module}`,
  });
  const each = await connectToEach(service.url, FRONT_ENDS);
  const signer = newSigner();
  // Front ends get the list in a message of its own. The log does not tell them of it.
  writeFileSync(list, `key ${signer.fingerprint}\n`);
  service.process.kill("SIGHUP");
  const attest = async (connection: Connection) =>
    (await connection.post("/attestations", submission(signer, newManifest("the first")))).status;
  await expect.poll(async () => [await attest(each[0]!), await attest(each[1]!)]).toEqual([200, 200]);
  let seen = 0;
  for (let n = 0; n < 4 * FRONT_ENDS; n++) {
    const [writer, reader, other] = [0, 1, 2].map((i) => each[(n + i) % FRONT_ENDS]!) as [
      Connection,
      Connection,
      Connection,
    ];
    const making = writer.post("/attestations", submission(signer, newManifest(`document ${n}`)));
    // Whoever is shown a head by one of them asks the next one at once.
    let head = await reader.get("/log/sth");
    while ((head.body.tree_size ?? 0) <= seen) head = await reader.get("/log/sth");
    seen = head.body.tree_size;
    expect((await other.get("/log/sth")).body.tree_size).toBeGreaterThanOrEqual(seen);
    const made = await making;
    expect(made.status, made.text).toBe(200);
    const { log_entry_id, entry_hash, sth } = made.body;
    for (const one of [reader, other]) {
      const [entry, newest] = await Promise.all([one.get(`/log/${log_entry_id}`), one.get("/log/sth")]);
      expect([entry.status, entry.body.entry_hash]).toEqual([200, entry_hash]);
      expect(newest.body).toEqual(sth);
    }
    seen = sth.tree_size;
  }
  for (const connection of each) connection.close();
  expect(await service.stop()).toBe(0);
});
