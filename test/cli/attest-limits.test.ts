/** What `cairnlog attest DIR` says of the service's limit before it starts. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { limitWords } from "#cairnlog/server/cli/signing/attest.js";
import { startTestService } from "../server/harness.js";
import { scratchFolder } from "../service.js";
import { cairnlog, pin } from "./harness.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

test("it is said only if there are more files than the limit allows, with the time that it takes", () => {
  expect(limitWords(1000, undefined)).toBeNull();
  expect(limitWords(50, { requests: 50, seconds: 3600 })).toBeNull();
  expect(limitWords(120, { requests: 50, seconds: 3600 })).toBe(
    "The service takes 50 attestations in 1 h from one address: at most 50 of the 120 files are attested now. Attest the others in portions of 50, one every 1 h: about 2 h more.",
  );
  expect(limitWords(3, { requests: 2, seconds: 90 })).toMatch(/in 1\.5 min from .* about 1\.5 min more\.$/);
  expect(limitWords(3, { requests: 2, seconds: 20 })).toMatch(/in 20 s from/);
});

test("the service tells its limit, and the command says it first", async () => {
  const service = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_ATTESTATION: "2" });
  const key = join(folder.path, "me.pem");
  await cairnlog(["keygen", "--out", key]);
  const files = join(folder.path, "files");
  mkdirSync(files);
  for (const name of ["a", "b", "c"]) writeFileSync(join(files, name), name);
  const state = ["--state", join(folder.path, "state")];
  await pin(service.url, join(folder.path, "state"));
  const run = await cairnlog(["attest", files, "--key", key, "--pseudonym", "Me", ...state], {
    CAIRNLOG_SERVER: service.url,
  });
  expect(run.stderr).toMatch(
    /^Attesting 3 files\.\nThe service takes 2 attestations in 1 h from one address: at most 2 of/,
  );
  expect(run.stdout.match(/: entry \d+/g)).toHaveLength(2);
  expect(run.code).toBe(1);
  await service.close();
});
