/** Two publishers of a log that is handed to another operator key, one of which is slower. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { type Policy, parseVkey } from "#cairnlog/engine/verify/index.js";
import { ClientError } from "#cairnlog/server/client/base/error.js";
import { Http } from "#cairnlog/server/client/base/http.js";
import { ServedTiles } from "#cairnlog/server/client/log/served.js";
import { Publisher } from "#cairnlog/server/publishing/publisher.js";
import { PublishedEntries, ServiceEntries } from "#cairnlog/server/publishing/source.js";
import { anyEvent } from "../anyevent.js";
import { cairnlog } from "../cli/harness.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { LiveLog } from "./logs.js";
import { MemoryTarget, type Objects } from "./memory.js";

test("whichever effect of the slower one the faster one comes behind, its keys and its checkpoint stay", async () => {
  const [data, keys] = [temporaryFolder(), temporaryFolder()];
  const settings = { SERVICE_DATA_DIR: data, SERVICE_CHECKPOINT_INTERVAL_S: "1" };
  const logs: Policy["logs"][number][] = [];
  const policy: Policy = { logs, witnesses: [], groups: [], quorum: null };
  const options = { policy, isPinned: true, keepPartial: false };
  const target = new MemoryTarget();
  /** What an undisturbed publisher has made by now. */
  const made = async (service: TestService): Promise<Objects> => {
    const key = parseVkey((await service.send("GET", "/tlog/vkey")).text.trim());
    if (!logs.some((one) => one.key.id === key.id)) logs.push({ key, url: null });
    const source = new ServedTiles(new Http(`${service.url}/tlog`, fetch));
    const entries = new ServiceEntries(new Http(service.url, fetch));
    await new Publisher({ source, target, entries, ...options }).round("edge");
    return new Map(target.objects);
  };
  const before = await LiveLog.start(10, settings);
  const begun = await made(before.service);
  await before.grow(20);
  const slower = await made(before.service);
  await before.service.close();
  writeFileSync(join(keys, "next.pem"), generatePrivateKey("ed25519"), { mode: 0o600 });
  const args = ["operator", "rotate", "--to", join(keys, "next.pem"), "--data", data];
  expect(await cairnlog(args)).toMatchObject({ code: 0 });
  const after = await startTestService(settings);
  await after.server.registry.log.append([anyEvent(), anyEvent()]);
  await after.checkpointed(23);
  const faster = await made(after);

  const publisher = (objects: Objects, to: MemoryTarget) => {
    const rootBytes = async (path: string) => {
      const bytes = objects.get(path.slice(1));
      if (!bytes) throw new ClientError("not-found", "It is not there.", { status: 404 });
      return bytes;
    };
    const source = new ServedTiles({ server: "memory", rootBytes });
    return new Publisher({ source, target: to, entries: new PublishedEntries(source), ...options });
  };
  const paths = ["checkpoint", "vkey", "log/operator-key"];
  for (const path of paths) expect(faster.get(path), path).not.toEqual(slower.get(path));
  let number = 0;
  for (let isOvertaken = true; isOvertaken; ) {
    number++;
    isOvertaken = false;
    const both = new MemoryTarget(begun);
    let effects = 0;
    both.behind = async () => {
      if (isOvertaken || ++effects !== number) return;
      isOvertaken = true;
      await publisher(faster, both).round("edge");
    };
    await publisher(slower, both)
      .round("edge")
      .catch((error: unknown) => expect(error).toBeInstanceOf(ClientError));
    const expected = isOvertaken ? faster : slower;
    for (const path of paths)
      expect(`${both.objects.get(path)}`, `${path} behind effect ${number}`).toBe(`${expected.get(path)}`);
  }
  expect(number).toBeGreaterThan(3);
});
