/** Files that tell people on the machine what the service is called: each start makes sure of them, and none loses them. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keepPrivateFile } from "#cairnlog/engine/store/lmdb/private.js";
import { startTestService, temporaryFolder } from "../harness.js";

const NAMES = ["operator.pub.pem", "tlog.vkey"];

// A user other than root gets no block back from a full disk of which root has taken the reserve.
test("a start writes none that is right, and puts one right that is not", async () => {
  const dataDir = temporaryFolder();
  const start = async () => (await startTestService({ SERVICE_DATA_DIR: dataDir })).close();
  const paths = NAMES.map((name) => join(dataDir, name));
  const written = () => paths.map((path) => statSync(path, { bigint: true }).mtimeNs);
  const contents = () => paths.map((path) => readFileSync(path, "utf8"));
  await start();
  const [times, right] = [written(), contents()];
  await start();
  expect(written()).toEqual(times);
  for (const path of paths) writeFileSync(path, "");
  await start();
  expect(contents()).toEqual(right);
  expect(paths.map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600]);
});

test("one that cannot be written stays whole", () => {
  // The name of a draft is longer, and no file can have it.
  const path = join(temporaryFolder(), "n".repeat(240));
  writeFileSync(path, "old");
  expect(() => keepPrivateFile(path, "new")).toThrow(/ENAMETOOLONG/);
  expect(readFileSync(path, "utf8")).toBe("old");
});
