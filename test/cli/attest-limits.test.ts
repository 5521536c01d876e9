/** What `cairnlog attest DIR` does about the service's limit: it says it before it starts, and waits for it on request. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { limitWords } from "#cairnlog/server/cli/signing/before-attesting.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { begin, interrupt, pin, type Running } from "./harness.js";

const folder = temporaryFolder();

test("it is said only if there are more files than the limit allows, with the time that it takes", () => {
  expect(limitWords(1000, undefined, false)).toBeNull();
  expect(limitWords(50, { requests: 50, seconds: 3600 }, false)).toBeNull();
  expect(limitWords(120, { requests: 50, seconds: 3600 }, false)).toBe(
    "The service takes 50 attestations in 1 h from one address: at most 50 of the 120 files are attested now. With --wait the command goes on with the others, for about 2 h; or repeat it later.",
  );
  expect(limitWords(3, { requests: 2, seconds: 90 }, true)).toMatch(
    /in 1\.5 min from .*: the 3 files take about 1\.5 min\. /,
  );
  expect(limitWords(3, { requests: 2, seconds: 20 }, true)).toMatch(/in 20 s from/);
});

describe("a directory larger than the limit", () => {
  let service: TestService;
  let attest: (...more: string[]) => Running;
  const files = join(folder, "files");
  beforeAll(async () => {
    service = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_ATTESTATION: "2" });
    const key = join(folder, "me.pem");
    writeFileSync(key, newSigner().privateKey);
    mkdirSync(files);
    for (const name of ["a", "b", "c", "d", "e"]) writeFileSync(join(files, name), name);
    await pin(service.url);
    attest = (...more) => begin(["attest", files, "--key", key, "--server", service.url, ...more]);
  });

  test("is attested as far as the limit goes, after a word about it", async () => {
    const run = await attest().ended;
    expect(run.stderr).toMatch(
      /^Attesting 5 files\.\nThe service takes 2 attestations in 1 h from one address: at most 2 of/,
    );
    expect(run.stdout.match(/: entry \d+/g)).toHaveLength(2);
    expect(run.code).toBe(1);
  });

  test("is waited for with --wait; an interrupt then says what was recorded", async () => {
    const run = attest("--wait");
    await run.prints(/limit is reached; trying again at/, "stderr");
    await interrupt("SIGINT");
    const { code, stderr } = await run.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /2 attestations in 1 h from one address: the 3 files take about 1 h\. An interrupted command can be/,
    );
    expect(stderr).toMatch(
      /\nRecorded, with their receipts: 2 of 5 files\. Run the command again for the others\.\ncairnlog: Interrupted\.\n$/,
    );
  });
});
