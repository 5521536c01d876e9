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
import { connectToEach } from "./connections.js";

const FRONT_ENDS = 3;
const folder = mkdtempSync(join(tmpdir(), "cairnlog-telling-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A front end that has its message can answer its client before the next one has its own. */
const SLOWLY = `
import { isMainThread, MessagePort } from "node:worker_threads";
const post = MessagePort.prototype.postMessage;
if (isMainThread)
  MessagePort.prototype.postMessage = function (message, moved) {
    post.call(this, message, moved);
    if (message?.kind === "news") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  };
`;

test("a client that was answered finds its entry at every other front end", async () => {
  const module = join(folder, "slowly.mjs");
  writeFileSync(module, SLOWLY);
  const service = await startService(temporaryFolder(), {
    ...{ SERVICE_FRONT_ENDS: `${FRONT_ENDS}`, SERVICE_TRANSPORT: "uws" },
    NODE_OPTIONS: `--import ${module}`,
  });
  const each = await connectToEach(service.url, FRONT_ENDS);
  const signer = newSigner();
  for (let n = 0; n < 4 * FRONT_ENDS; n++) {
    const made = await each[n % FRONT_ENDS]!.post("/attestations", submission(signer, newManifest(`document ${n}`)));
    expect(made.status, made.text).toBe(200);
    const { log_entry_id, entry_hash, sth } = made.body;
    for (const other of each.filter((_, i) => i !== n % FRONT_ENDS)) {
      const [entry, head] = await Promise.all([other.get(`/log/${log_entry_id}`), other.get("/log/sth")]);
      expect([entry.status, entry.body.entry_hash]).toEqual([200, entry_hash]);
      expect(head.body).toEqual(sth);
    }
  }
  for (const connection of each) connection.close();
  expect(await service.stop()).toBe(0);
});
