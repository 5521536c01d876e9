/** `cairnlog publish` into a bucket of a real S3 store that answers 501 to conditional PUTs. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { cairnlog } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { expectEntries } from "./entries.js";
import { expectWhole, LiveLog } from "./logs.js";
import { SWIFT_CREDENTIALS, Swift } from "./swift.js";

let store: Swift;
let log: LiveLog;
/** The log as it was at its first checkpoint. */
const older = temporaryFolder();
beforeAll(async () => {
  [store, log] = await Promise.all([Swift.start(), LiveLog.start(100)]);
  expect(await cairnlog(["publish", log.url, older, "--entries"])).toMatchObject({ code: 0 });
});
afterAll(() => store?.stop());

const environment = () => ({ ...SWIFT_CREDENTIALS, AWS_ENDPOINT_URL: store.url });
const publish = (source: string, ...more: string[]) =>
  cairnlog(["publish", source, "s3://logs/tlog", "--json", ...more], environment());
const read = async (path: string) => {
  const answer = await store.ask("GET", `/tlog/${path}`);
  return answer.ok ? Buffer.from(await answer.arrayBuffer()) : undefined;
};

test("a log is published twice, and it is said that two publishers are not safe", async () => {
  const first = await publish(log.url, "--entries");
  expect([first.code, first.stderr]).toEqual([0, expect.stringContaining("does not know conditional requests")]);
  await expectWhole(read, 100);
  await log.grow(300);
  expect(JSON.parse((await publish(log.url)).stdout)).toMatchObject({ published: 300, is_new: true });
  await expectWhole(read, 300);
  await expectEntries(read, log.service, 300);
  const { headers } = await store.ask("GET", "/tlog/tile/0/000");
  expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(await cairnlog(["fsck", "s3://logs/tlog", "--vkey", await log.vkey()], environment())).toMatchObject({
    code: 0,
  });
});

test("nothing is taken back or replaced, though the store would do so", async () => {
  expect(await publish(older)).toMatchObject({ code: 4, stderr: expect.stringContaining("never taken back") });
  expect((await store.ask("PUT", "/tlog/tile/0/001.p/44", "no tile")).status).toBe(200);
  expect(await publish(log.url)).toMatchObject({ code: 3, stderr: expect.stringContaining("tile/0/001.p/44") });
  expect((await read("tile/0/001.p/44"))!.toString()).toBe("no tile");
});
