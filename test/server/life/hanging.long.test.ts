/** Parts of a service hang when it is stopped. It ends in time, says what hung, and its exit code says whether writes are lost. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";
import { MAIN, type RunningService, scratchFolder, startService } from "../../service.js";
import { newSigner, registration } from "../signers.js";
import { metric, until } from "../sockets.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

const LEADER_TASKS = "anchoring, webhooks and witnesses";
const FRONTS = "the front ends and their connections";
const UNDECIDED = "writes that it had accepted may be undecided";
const LOSSLESS = "nothing that it had accepted is lost";

async function startHanging(
  hang: string,
  frontEnds = "0",
): Promise<{ service: RunningService; file: string; stderr: Promise<string> }> {
  const file = join(folder.path, `${hang}-${frontEnds}.file`);
  if (hang === "pool") execFileSync("mkfifo", [file]);
  let stderr = Promise.resolve("");
  const service = await startService(
    join(folder.path, `${hang}-${frontEnds}`),
    {
      SERVICE_STOP_TIMEOUT_S: "4",
      SERVICE_FRONT_ENDS: frontEnds,
      NODE_OPTIONS: `--import ${new URL("./hang.mjs", import.meta.url).href}`,
      HANG: hang,
      HANG_BUILD: new URL("../../", pathToFileURL(MAIN)).href,
      HANG_FILE: file,
    },
    {
      hasParent: true,
      stderr: "pipe",
      started: (child) => {
        stderr = text(child.stderr!);
      },
    },
  );
  return { service, file, stderr };
}

const register = ({ url }: RunningService) =>
  fetch(`${url}/api/v1/keys/register`, { method: "POST", body: JSON.stringify(registration(newSigner())) });

const stop = (service: RunningService) => {
  service.process.kill("SIGTERM");
  return service.exited;
};

test.each([
  ["leaderTasks", "0", LEADER_TASKS],
  ["leaderTasks", "2", LEADER_TASKS],
  ["fronts", "0", FRONTS],
  ["fronts", "2", FRONTS],
  ["log", "0", "the log"],
  ["timer", "0", "a timer"],
])("%s, with %s front ends: code 0, because every write is on disk", async (hang, frontEnds, named) => {
  const { service, stderr } = await startHanging(hang, frontEnds);
  expect((await register(service)).status).toBe(200);
  expect(await stop(service)).toBe(0);
  expect(await stderr).toContain(`cairnlog: the service was ended while this hung: ${named}; ${LOSSLESS}\n`);
});

test.each(["0", "2"])("a write that is not decided, with %s front ends: code 1", async (frontEnds) => {
  const { service, file, stderr } = await startHanging("disk", frontEnds);
  expect((await register(service)).status).toBe(200);
  writeFileSync(file, "");
  const answer = register(service).then(
    ({ status }) => status,
    () => null,
  );
  await until(async () => (await metric(service.url, "cairnlog_http_in_flight")) > 1);
  expect(await stop(service)).toBe(1);
  expect(await answer).not.toBe(200);
  expect(await stderr).toMatch(
    /^cairnlog: the service was ended while this hung: .*the log; writes that it had accepted are not decided$/m,
  );
});

test.each([
  // It is stuck before anything is closed, even before the signal.
  ["deaf", "the service", 1, UNDECIDED],
  ["thread", LEADER_TASKS, 1, UNDECIDED],
  ["pool", "a file operation", 0, LOSSLESS],
])("%s: what cannot be ended from within is killed by the parent", async (hang, named, code, rest) => {
  const { service, file, stderr } = await startHanging(hang);
  expect((await register(service)).status).toBe(200);
  if (hang === "deaf") {
    writeFileSync(file, "");
    const isDeaf = () =>
      fetch(`${service.url}/livez`, { signal: AbortSignal.timeout(500) }).then(
        () => false,
        () => true,
      );
    await until(isDeaf);
  }
  expect(await stop(service)).toBe(code);
  expect(await stderr).toContain(`cairnlog: the service was killed while this hung: ${named}; ${rest}\n`);
});
