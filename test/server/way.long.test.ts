/** How many files of the product a request passes through, as V8 counts it: the next feature is to be found without reading all. */
import { Session } from "node:inspector/promises";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { bodies, done, newPair } from "./endorsements.js";
import { NO_FRONT_ENDS, startTestService, type TestService } from "./harness.js";
import { proofOf, registeredSigner } from "./proofs.js";
import { newManifest, submission } from "./signers.js";

type Coverage = { result: { url: string; functions: { functionName: string; ranges: { count: number }[] }[] }[] };

/** Libraries that the build bundles: nobody reads them to find the next feature. */
const BUNDLED = /^engine\/typebox\/|\/prom-client\.js$/;

/**
 * The files that each of several requests passed through: timers of the service fall into some; on a busy machine, into so many
 * that more than `most` files are left, and more requests tell them apart.
 */
async function filesOnTheWay(
  prepare: () => Promise<() => Promise<{ status: number }>>,
  most: number,
): Promise<readonly string[]> {
  const session = new Session();
  session.connect();
  onTestFinished(() => session.disconnect());
  await session.post("Profiler.enable");
  let common: readonly string[] | undefined;
  for (let round = 0; round < 5 || (common!.length > most && round < 30); round++) {
    const request = await prepare();
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await session.post("Profiler.takePreciseCoverage");
    expect((await request()).status).toBe(200);
    const { result } = (await session.post("Profiler.takePreciseCoverage")) as Coverage;
    await session.post("Profiler.stopPreciseCoverage");
    const passed = result.filter(({ functions }) =>
      functions.some(({ functionName, ranges }) => functionName && ranges[0]!.count > 0),
    );
    const files = passed.flatMap(({ url }) => /\/dist\/((?:engine|server|wasm)\/.+)$/.exec(url)?.[1] ?? []);
    const way = files.filter((file) => !BUNDLED.test(file));
    common = common?.filter((file) => way.includes(file)) ?? way;
  }
  return common!;
}

let service: TestService;
beforeAll(async () => {
  service = await startTestService(NO_FRONT_ENDS);
});

test.each([
  [
    "an attestation",
    76,
    async () => {
      const signer = await registeredSigner(service);
      const body = submission(signer, newManifest());
      return () => service.post("/attestations", body);
    },
  ],
  [
    "an acceptance",
    83,
    async () => {
      const pair = await newPair(service);
      await done("offer", pair);
      const body = { ...bodies.accept(pair), auth: await proofOf(service, pair.endorsed) };
      return () => service.post("/endorsements/accept", body);
    },
  ],
  ["a proof", 14, async () => () => service.get("/log/1/proof")],
] as const)("%s passes through at most %i files", async (_, most, prepare) => {
  const files = await filesOnTheWay(prepare, most);
  expect(files.length, files.join("\n")).toBeLessThanOrEqual(most);
  expect(files.length).toBeGreaterThan(5);
});
