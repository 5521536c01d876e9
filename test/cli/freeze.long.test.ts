/** `cairnlog operator freeze`, on a data directory and through the service that writes it. */
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { scratchFolder, startService } from "../service.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());

test("ends a log whose service runs, and one that has stopped; a repeated command changes nothing", async () => {
  const data = join(scratch.path, "data");
  let service = await startService(data);
  const vkey = (await (await fetch(`${service.url}/tlog/vkey`)).text()).trim();
  const freeze = (...more: string[]) => cairnlog(["operator", "freeze", "--data", data, ...more]);
  const ending = ["--reason", "The year is over.", "--successor", "https://next.example", "--vkey", vkey];
  expect(await freeze()).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason is missing") });
  expect(await freeze(...ending.slice(0, 4))).toMatchObject({ code: 2, stderr: expect.stringContaining("--vkey") });
  expect(await freeze(...ending)).toMatchObject({ code: 1, stderr: expect.stringMatching(/in use by process \d+/) });
  const { code, stdout, stderr } = await freeze(...ending, "--server", service.url, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const { sth, ...said } = JSON.parse(stdout);
  expect(said).toEqual({ reason: "The year is over.", successor: { url: "https://next.example", vkey } });
  const answer = await fetch(`${service.url}/api/v1/log/sth`);
  expect(await answer.json()).toEqual(sth);
  await service.stop();

  const again = await freeze(...ending);
  expect(again).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`has ${sth.tree_size} leaves and the root `),
  });
  const another = await freeze("--reason", "Another.");
  expect(another).toMatchObject({ code: 1, stderr: expect.stringContaining("It goes on at https://next.example.") });
  service = await startService(data);
  expect((await (await fetch(`${service.url}/api/v1/log/sth`)).json()).tree_size).toBe(sth.tree_size);
  await service.stop();
});

test("ends a stopped log without a successor", async () => {
  const data = join(scratch.path, "stopped");
  await (await startService(data)).stop();
  const { code, stdout } = await cairnlog(["operator", "freeze", "--data", data, "--reason", "Nobody uses it."]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^The log is frozen\. Its last head has 1 leaves/)]);
});
