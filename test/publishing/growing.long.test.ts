/** `cairnlog publish --entries` of a log that grows. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStaticLog } from "#cairnlog/server/client/static/log.js";
import { begin, interrupt } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner } from "../server/signers.js";
import { expectEntries } from "./entries.js";
import { expectWhole, LiveLog } from "./logs.js";

test("a run of the index is made of those before it, and a reader finds a document with a range of each", async () => {
  const warnings: string[] = [];
  const note = ({ message }: Error) => warnings.push(message);
  process.on("warning", note);
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
  process.off("warning", note);
  expect(warnings).toEqual([]);
  const read = (path: string) => readFile(join(target, path)).catch(() => undefined);
  await expectWhole(read, 5000);
  const entries = await expectEntries(read, own.service, 5000);
  let ranges = 0;
  const files = {
    server: target,
    rootBytes: async (path: string, range?: { readonly from: number; readonly to: number }) => {
      const bytes = await readFile(join(target, path));
      if (range) ranges++;
      return range ? bytes.subarray(range.from, range.to) : bytes;
    },
  };
  const published = await openStaticLog({ log: files, trusted: await own.vkey() });
  for (const { id, payload } of entries.filter(({ payload }) => payload!.document_hash !== undefined)) {
    ranges = 0;
    const found: number[] = [];
    for await (const { entry } of published.about(payload!.document_hash as string)) found.push(entry.id);
    expect(found).toEqual([id]);
    expect(ranges).toBeLessThanOrEqual(2);
  }
});
