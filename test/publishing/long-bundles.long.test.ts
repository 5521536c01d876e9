/** Bundles that are longer than any answer of a service: what anybody may put on the log, is published and read, too. */
import { randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MAX_CIPHERTEXT_BYTES } from "#cairnlog/engine/verify/keys/contract.js";
import { openStaticLog } from "#cairnlog/server/client/static/log.js";
import { anyEvent } from "../anyevent.js";
import { cairnlog } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { LiveLog, served } from "./logs.js";

/** The largest answer of the API, in bytes. */
const LONGEST_ANSWER = 256 * (2 + 65_535);

test("a bundle of long claims is published, goes on, is read, copied, checked and followed", async () => {
  const log = await LiveLog.start(100);
  const { registry } = log.service.server;
  for (let n = 0; n < 66; n++)
    await registry.log.append(anyEvent({ ciphertext: randomBytes(MAX_CIPHERTEXT_BYTES).toString("base64") }));
  await registry.log.append(Array.from({ length: 90 }, (_, i) => anyEvent({ i })));
  await log.service.checkpointed(256);
  const [folder, copy, mirror, state] = [0, 1, 2, 3].map(() => temporaryFolder()) as [string, string, string, string];
  const vkey = await log.vkey();
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await cairnlog([...args, "--vkey", vkey]);
    expect([code, stderr.includes("cairnlog:")], stdout + stderr).toEqual([0, false]);
  };
  await run("publish", log.url, folder, "--entries");
  expect(statSync(join(folder, "entries/000")).size).toBeGreaterThan(LONGEST_ANSWER);
  await registry.log.append(anyEvent());
  await log.service.checkpointed(257);
  await run("publish", log.url, folder);
  const url = await served(folder);
  const read = await openStaticLog({ log: url, trusted: vkey });
  expect((await read.entry(120)).entry).toEqual(registry.log.entry(120));
  await run("publish", url, copy, "--entries");
  await run("fsck", url);
  await run("restore", url, "--to", mirror);
  await run("monitor", url, "--state", state, "--once");
});
