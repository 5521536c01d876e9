/** The state that is left when `cairnlog operator rotate` is killed while it runs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { anyEvent } from "../anyevent.js";
import { cairnlog, MAIN, scratchFolder, startService } from "../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const ROUNDS = 6;

test("killed anywhere on the way, one key is the operator's, and the next run finishes", async () => {
  const [oldPem, newPem] = [generatePrivateKey("ed25519"), generatePrivateKey("ed25519")];
  const [from, to] = [operatorKey(oldPem), operatorKey(newPem)];
  const newFile = join(folder.path, "new.pem");
  writeFileSync(newFile, newPem);
  const prepare = async (name: string) => {
    const data = join(folder.path, name);
    mkdirSync(data);
    writeFileSync(join(data, "operator.pem"), oldPem, { mode: 0o600 });
    const log = await openLog({ path: join(data, "log"), signer: from, projection });
    await log.append([0, 1, 2].map(() => anyEvent({})));
    await log.close();
    return { data, args: ["operator", "rotate", "--to", newFile, "--data", data] };
  };
  // How long a whole run takes here; the kills are spread over it.
  const whole = await prepare("whole");
  const started = Date.now();
  expect((await cairnlog(whole.args)).code).toBe(0);
  const milliseconds = Date.now() - started;

  for (let round = 0; round < ROUNDS; round++) {
    const { data, args } = await prepare(`killed-${round}`);
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: "ignore" });
    const exited = once(child, "exit");
    // The files change in the last third.
    await sleep((milliseconds * (ROUNDS / 2 + round)) / (1.5 * ROUNDS));
    child.kill("SIGKILL");
    await exited;
    // The file holds one of the keys, whole.
    expect([oldPem, newPem]).toContain(readFileSync(join(data, "operator.pem"), "utf8"));
    const again = await cairnlog(args);
    if (again.code !== 0) expect(again.stderr).toContain("is or was an operator key of this log");
    expect(readFileSync(join(data, "operator.pem"), "utf8")).toBe(newPem);
    const service = await startService(data);
    const { operators } = await (await fetch(`${service.url}/api/v1/log/operator-key`)).json();
    expect(operators.map(({ key_id }: { key_id: string }) => key_id)).toEqual([from.fingerprint, to.fingerprint]);
    const report = await (await fetch(`${service.url}/api/v1/log/verify`, { method: "POST", body: "{}" })).json();
    expect(report).toMatchObject({ valid: true, entry_count: 4 });
    expect(await service.stop()).toBe(0);
  }
});
