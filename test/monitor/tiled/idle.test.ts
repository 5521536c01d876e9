/** An idle log and a frozen one: the same checkpoint is a sign of life if a quorum of witnesses has cosigned it anew. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { expect, test, vi } from "vitest";
import { type Policy, parsePolicy } from "#cairnlog/engine/verify/index.js";
import { tiledFollower } from "#cairnlog/server/cli/log/follower.js";
import { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { temporaryFolder } from "../../server/harness.js";
import { newNoteSigner } from "../../verify/note/notes.js";
import { StaticLog, serving, URL_OF_LOG } from "./staticlog.js";

const log = new StaticLog(9);
const witness = (name: string) => ({ ...newNoteSigner(`${name}.example`, 4), name });
const [a, b, c] = [witness("a"), witness("b"), witness("c")];
const TWO_OF_THREE = parsePolicy(
  `log ${log.signer.vkey}\n${[a, b, c].map(({ name, vkey }) => `witness ${name} ${vkey}\n`).join("")}group two 2 a b c\nquorum two\n`,
);
const NONE = parsePolicy(`log ${log.signer.vkey}\nquorum none\n`);
const stranger = newNoteSigner("stranger.example", 4);
const START = 1_700_000_000;

/** Runs `work`, in which no file changes any more once the checkpoint has its name. */
async function killedBehindCheckpoint(work: () => Promise<unknown>): Promise<void> {
  const { renameSync } = fs;
  const killed = () => {
    throw new Error("killed");
  };
  vi.spyOn(fs, "renameSync").mockImplementation((from, to) => {
    renameSync(from, to);
    if (!String(to).endsWith("/checkpoint")) return;
    for (const name of ["utimesSync", "openSync", "fsyncSync", "rmSync"] as const)
      vi.spyOn(fs, name).mockImplementation(killed);
    syncBuiltinESMExports();
  });
  syncBuiltinESMExports();
  try {
    await expect(work()).rejects.toThrow("killed");
  } finally {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  }
}

/** Follows the log, which shows a checkpoint with these cosignatures each time. */
function follow(policy: Policy) {
  const files = log.files();
  const follower = tiledFollower({
    server: URL_OF_LOG,
    folder: new MonitorFolder(temporaryFolder()),
    fetch: (...request) => serving(files)(...request),
    policy,
    isUnpruned: false,
  });
  type By = readonly (readonly [who: { line(text: string, time: number): string }, seconds: number])[];
  const show = async (by: By) => {
    const lines = by.map(([who, seconds]) => who.line(log.text(), START + seconds));
    files.set("checkpoint", Buffer.from(log.signer.note(log.text()) + lines.join("")));
    await follower.round({ audit: false });
  };
  const seen = async () => Date.parse((await follower.newest())!.timestamp) / 1000 - START;
  return Object.assign(
    async (...by: By) => {
      await show(by);
      return seen();
    },
    {
      async killed(...by: By) {
        await killedBehindCheckpoint(() => show(by));
        return seen();
      },
    },
  );
}

test("with a quorum, life is the time since which a quorum has cosigned, by the witnesses' clocks", async () => {
  const seen = follow(TWO_OF_THREE);
  expect(await seen([a, 0], [b, 10])).toBe(0);
  // One witness alone, one that is not in the policy, and what was shown before say nothing.
  expect(await seen([a, 0], [b, 310])).toBe(0);
  expect(await seen([a, 0], [b, 310], [stranger, 900])).toBe(0);
  expect(await seen([a, 0], [b, 10])).toBe(0);
  expect(await seen([a, 300], [b, 310])).toBe(300);
  expect(await seen([a, 300], [b, 310], [c, 305])).toBe(305);
  // A cache that shows an older answer sets nothing back.
  expect(await seen([a, 0], [b, 10])).toBe(305);
  // A cosignature of the future is no sign of life: it would be one each time until then.
  const ahead = Math.floor(Date.now() / 1000) + 86_400 - START;
  expect(await seen([a, ahead], [b, ahead])).toBe(305);
  expect(await seen([a, 300], [b, ahead], [c, 400])).toBe(305);
  // It does not keep those that come later away.
  expect(await seen([a, 600], [b, 610], [c, ahead])).toBe(600);
  expect(await seen([a, 900], [b, 910])).toBe(900);
});

test("a quorum that has cosigned in the future alone is no sign of life, and later ones are", async () => {
  const seen = follow(TWO_OF_THREE);
  const ahead = Math.floor(Date.now() / 1000) + 86_400 - START;
  const first = await seen([a, ahead], [b, ahead]);
  const hour = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 3_600_000);
  expect(await seen([a, ahead], [b, ahead])).toBe(first);
  hour.mockRestore();
  expect(await seen([a, 300], [b, 310])).toBe(300);
});

test("without a quorum, nothing but new entries is a sign of life", async () => {
  const seen = follow(NONE);
  const first = await seen();
  expect(await seen([a, 300])).toBe(first);
  expect(await seen([a, 600], [stranger, 900])).toBe(first);
  expect(await seen.killed([a, 900])).toBe(first);
});
