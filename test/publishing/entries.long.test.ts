/** `cairnlog publish --entries` of a log that grows. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { begin, interrupt } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner } from "../server/signers.js";
import { expectEntries } from "./entries.js";
import { expectWhole, LiveLog } from "./logs.js";

test("a run of the index is made of those before it", async () => {
  const own = await LiveLog.start(0);
  const [ada, target] = [newSigner(), temporaryFolder()];
  const follower = begin(["publish", own.url, target, "--entries", "--follow", "--interval", "1", "--json"]);
  for (const to of [4500, 4700, 4900, 5000]) {
    for (let i = 0; i < 70; i++) await own.attest(ada, newManifest());
    await own.grow(to);
    await follower.prints(new RegExp(`"published":${to},`));
  }
  await interrupt();
  expect(await follower.ended).toMatchObject({ code: 0 });
  const read = (path: string) => readFile(join(target, path)).catch(() => undefined);
  await expectWhole(read, 5000);
  await expectEntries(read, own.service, 5000);
});
