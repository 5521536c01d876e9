/**
 * The service's own log cannot be written, in every way in which stderr can fail. Requests are answered all the same, lines
 * are dropped and counted, and a stop ends with exit code 0.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { scratchFolder, startService } from "../../service.js";
import { newSigner, registration } from "../signers.js";
import { metric, until } from "../sockets.js";

const WRAPPER = fileURLToPath(new URL("./unwritable.py", import.meta.url));
const DROPPED = "cairnlog_log_lines_dropped_total";
const folder = scratchFolder();
afterAll(() => folder.remove());

const WAYS = ["disk", "pipe", "reader", "socket", "terminal", "terminals"];
const cases = WAYS.flatMap((how) => ["0", "2"].map((frontEnds) => [how, frontEnds] as const));

test.each(cases)("%s, with %s front ends", async (how, frontEnds) => {
  const dataDir = join(folder.path, `${how}-${frontEnds}`);
  const closed = `${dataDir}.closed`;
  const service = await startService(
    dataDir,
    { LOG_LEVEL: "debug", SERVICE_FRONT_ENDS: frontEnds },
    { hasParent: true, wrapper: ["python3", WRAPPER, how, closed] },
  );
  writeFileSync(closed, "");
  const register = () =>
    fetch(`${service.url}/api/v1/keys/register`, { method: "POST", body: JSON.stringify(registration(newSigner())) });
  const livez = async () => (await fetch(`${service.url}/livez`)).status;
  // A full pipe drops lines when those that may wait are too many.
  await until(async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, livez));
    expect(answers.every((status) => status === 200)).toBe(true);
    expect((await register()).status).toBe(200);
    return (await metric(service.url, DROPPED)) > 0;
  });
  expect((await register()).status).toBe(200);
  expect(await livez()).toBe(200);
  expect(await service.stop()).toBe(0);
});
