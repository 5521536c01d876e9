/** `cairnlog monitor --vkey` and `--policy`: on the checkpoints of a live service, and what the command refuses. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { anyEvent } from "../../anyevent.js";
import { cairnlog } from "../../cli/harness.js";
import { startTestService, type TestService, temporaryFolder } from "../../server/harness.js";
import { newNoteSigner } from "../../verify/note/notes.js";

let service: TestService;
let vkey: string;
beforeAll(async () => {
  service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  await service.server.registry.log.append(Array.from({ length: 300 }, (_, i) => anyEvent({ i })));
  await service.checkpointed(300);
  vkey = (await service.send("GET", "/tlog/vkey")).text.trim();
});

const monitor = (state: string, ...args: string[]) =>
  cairnlog(["monitor", `${service.url}/tlog`, "--state", state, "--once", ...args]);
const policyFile = (text: string) => {
  const file = join(temporaryFolder(), "policy");
  writeFileSync(file, text);
  return file;
};

test("a log of checkpoints is followed, by a key or by a policy", async () => {
  const state = temporaryFolder();
  const { code, stdout, stderr } = await monitor(state, "--vkey", vkey);
  expect(code, stderr).toBe(0);
  const origin = vkey.split("+")[0];
  expect(stdout).toMatch(/^verified: 300 entries, root [0-9a-f]{64}, checkpoint of \S+\n$/);
  expect(stdout).toContain(`checkpoint of ${origin}\n`);
  const again = await monitor(
    state,
    "--policy",
    policyFile(`log ${vkey}\nquorum none\n`),
    "--json",
    "--max-silence",
    "60",
  );
  expect(again.code).toBe(0);
  expect(JSON.parse(again.stdout)).toEqual({
    verified: 300,
    head: { origin, tree_size: 300, root_hash: expect.stringMatching(/^[0-9a-f]{64}$/), timestamp: expect.any(String) },
    cosigned: [],
  });
});

test("a checkpoint that too few witnesses have cosigned is not taken", async () => {
  const state = temporaryFolder();
  const { vkey: witness } = newNoteSigner("w.example", 4);
  const policy = policyFile(`log ${vkey}\nwitness W ${witness}\nquorum W\n`);
  const { code, stderr } = await monitor(state, "--policy", policy);
  expect([code, stderr]).toEqual([1, expect.stringContaining("no quorum of the witnesses; cosigned by: none.")]);
  expect(existsSync(join(state, "mirror"))).toBe(false);
});

test("one by another key is an alarm, with the evidence in a file", async () => {
  const state = temporaryFolder();
  const other = newNoteSigner(vkey.split("+")[0]!).vkey;
  const { code, stdout, stderr } = await monitor(state, "--vkey", other, "--json");
  expect([code, stderr]).toEqual([3, expect.stringContaining("ALARM bad-signature: The checkpoint is not signed")]);
  const { alarm, head, evidence_file } = JSON.parse(stdout);
  expect([alarm, head]).toEqual(["bad-signature", null]);
  expect(JSON.parse(readFileSync(evidence_file, "utf8")).evidence).toEqual({
    logs: [other],
    known: null,
    shown: (await service.send("GET", "/tlog/checkpoint")).text,
    prefixRoot: null,
    proof: null,
    entry: null,
  });
});

test("options that do not go together are refused", async () => {
  const key = join(temporaryFolder(), "operator.pem");
  for (const args of [
    ["--vkey", vkey, "--operator-key", key],
    ["--vkey", vkey, "--watch", `sha256:${"ab".repeat(32)}`],
    ["--policy", policyFile("quorum none\n")],
    ["--unpruned"],
  ])
    expect((await monitor(temporaryFolder(), ...args)).code, args.join(" ")).toBe(2);
  const { code, stderr } = await monitor(temporaryFolder(), "--vkey", `${vkey}A`);
  expect([code, stderr]).toEqual([1, expect.stringContaining("not a verifier key")]);
});
