/** Every front end serves the log as a C2SP log, and none of them less than another has shown. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestService, type TestService } from "../harness.js";
import { type Connection, connectToEach } from "./connections.js";

const FRONT_ENDS = 2;
let service: TestService;
let each: Connection[];
beforeAll(async () => {
  service = await startTestService({
    SERVICE_FRONT_ENDS: `${FRONT_ENDS}`,
    SERVICE_TRANSPORT: "uws",
    SERVICE_CHECKPOINT_INTERVAL_S: "1",
  });
  each = await connectToEach(service.url, FRONT_ENDS);
});
afterAll(() => {
  for (const connection of each) connection.close();
});

test("a checkpoint that one has shown is shown by the others, with every tile that it needs", async () => {
  const [first, second] = each as [Connection, Connection];
  const event = { event_type: "test.event", payload: {} };
  for (const size of [300, 600]) {
    await service.server.registry.log.append(Array.from({ length: 300 }, () => event));
    const shown = async () => (await first.send("GET", "/tlog/checkpoint")).text;
    await expect.poll(shown, { interval: 10 }).toContain(`\n${size}\n`);
    expect((await second.send("GET", "/tlog/checkpoint")).text).toBe(await shown());
    const full = Math.floor(size / 256);
    for (const path of [
      `tile/1/000.p/${full}`,
      `tile/0/00${full}.p/${size % 256}`,
      `tile/entries/00${full}.p/${size % 256}`,
      "tile/0/000",
    ]) {
      const answers = await Promise.all(each.map((connection) => connection.send("GET", `/tlog/${path}`)));
      for (const { status, text } of answers) expect([status, text], path).toEqual([200, answers[0]!.text]);
    }
  }
  const keys = await Promise.all(each.map((connection) => connection.send("GET", "/tlog/vkey")));
  expect(keys.map(({ status }) => status)).toEqual([200, 200]);
  expect(keys[0]!.text).toBe(keys[1]!.text);
});
