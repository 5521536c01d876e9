/** `cairnlog monitor`, killed while it copies a log. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OperatorKeys, parsePublicKey } from "#cairnlog/engine/verify/index.js";
import { Mirror } from "#cairnlog/server/monitor/mirror.js";
import { anyEvent } from "../anyevent.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { cairnlog, MAIN } from "../service.js";

test("killed at any moment, it goes on where it was", async () => {
  const state = temporaryFolder();
  const many = await startTestService();
  const notes = Array.from({ length: 4_000 }, (_, n) => anyEvent({ n }));
  await many.server.registry.log.append(notes);
  const before = await LyingProxy.before(many.url);
  const operatorKey = parsePublicKey((await many.get("/log/operator-key")).body.public_key);
  for (const pages of [1, 3, 4, 7]) {
    const child = spawn(process.execPath, [MAIN, "monitor", before.url, "--state", state, "--once"]);
    let asked = 0;
    await new Promise<void>((resolve) => {
      before.seize = (path) => {
        if (path.startsWith("/log?") && ++asked > pages) resolve();
        return asked > pages;
      };
    });
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
  before.repent();
  const mirror = await Mirror.open(join(state, "mirror"), OperatorKeys.of(operatorKey));
  const reached = mirror.size;
  await mirror.close();
  // Progress between two kills was not lost.
  expect(reached).toBeGreaterThanOrEqual(200 * (1 + 2 + 3 + 6));
  before.asked.length = 0;
  expect((await cairnlog(["monitor", before.url, "--state", state, "--once"])).code).toBe(0);
  expect(before.asked.filter((path) => path.startsWith("GET /log?")).length).toBeLessThanOrEqual(
    Math.ceil((4_000 - reached) / 200) + 2,
  );
});
