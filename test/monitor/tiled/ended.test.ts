/** A log of tiles that goes on behind its known end: two signed statements convict it, whatever else it answers or denies. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Entry, parsePolicy, parseTlogProof, verifyTlogProof } from "#cairnlog/engine/verify/index.js";
import { tiledFollower } from "#cairnlog/server/cli/log/follower.js";
import { Misbehaviour, type TiledEvidence } from "#cairnlog/server/monitor/alarm.js";
import { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { temporaryFolder } from "../../server/harness.js";
import { failureOf } from "../../thrown.js";
import { newNoteSigner } from "../../verify/note/notes.js";
import { StaticLog, serving, URL_OF_LOG } from "./staticlog.js";

const log = new StaticLog(600);
const [witness, idle] = [newNoteSigner("w.example", 4), newNoteSigner("idle.example", 4)];
const policyOf = (quorum: "W" | "idle") =>
  parsePolicy(`log ${log.signer.vkey}\nwitness W ${witness.vkey}\nwitness idle ${idle.vkey}\nquorum ${quorum}\n`);
const cosigned = (size: number) => Buffer.from(log.signer.note(log.text(size)) + witness.line(log.text(size)));

const END: Entry = {
  ...{ id: 1, timestamp: "2026-01-01T00:00:00.000Z", event_type: "log_frozen", entry_hashes: [] },
  ...{ payload: { reason: "The year is over.", successor: null }, previous_hash: null, entry_hash: "0".repeat(64) },
};

/** What the log, which then has 600 entries, answers to every question but that for its checkpoint. */
type Answer = (content: Buffer | undefined) => Response;
const denial: Answer = () => new Response("<Error/>", { status: 404 });
const answers: Readonly<Record<string, Answer>> = {
  denial,
  failure: () => new Response("<Error/>", { status: 500 }),
  "other bytes": (content) => new Response(Buffer.alloc(content?.length ?? 32, "x")),
  truth: (content) => (content ? new Response(content as BodyInit) : denial(content)),
};

/** The alarm of a monitor that has followed a log to its last entry, which froze it, and now sees a checkpoint of 600. */
async function alarmed(
  size: number,
  answer: Answer,
  change: (mirror: string) => void = () => {},
  quorum: "W" | "idle" = "W",
) {
  const folder = new MonitorFolder(temporaryFolder());
  const before = serving(new Map([...log.files(size), ["checkpoint", cosigned(size)]]));
  const files = new Map([...log.files(), ["checkpoint", cosigned(600)]]);
  let fetcher: typeof fetch = before;
  const followed = (policy: "W" | "idle") =>
    tiledFollower({
      ...{ server: URL_OF_LOG, folder, policy: policyOf(policy), isUnpruned: false },
      fetch: (...request) => fetcher(...request),
    }).round({ audit: false });
  await followed("W");
  folder.end = { entry: END, leafIndex: size - 1 };
  change(folder.mirror);
  fetcher = async (input) => {
    const path = String(input).slice(URL_OF_LOG.length + 1);
    return (path === "checkpoint" ? answers.truth! : answer)(files.get(path));
  };
  const { thrown: error } = await failureOf(followed(quorum));
  if (!(error instanceof Misbehaviour)) throw error;
  expect([error.kind, error.message]).toEqual([
    "after-freeze",
    `Entry 1 froze the log at ${size} leaves, and a signed checkpoint has 600.`,
  ]);
  const evidence = error.evidence as TiledEvidence;
  expect(evidence).toMatchObject({ known: cosigned(size).toString(), shown: cosigned(600).toString() });
  return evidence;
}

/** The entry is proven to be the last one of the checkpoint that was believed. */
async function expectProof({ end, known }: TiledEvidence, size: number) {
  const proof = parseTlogProof(end!);
  expect([proof.index, proof.checkpoint, JSON.parse(Buffer.from(proof.extra!).toString())]).toEqual([
    size - 1,
    known,
    END,
  ]);
  expect(await verifyTlogProof(proof, log.leaf(size - 1), policyOf("W"))).toMatchObject({ isValid: true });
}

test.each(Object.entries(answers))("behind an end in a partial and in a full tile: %s", async (_, answer) => {
  for (const size of [256, 300]) await expectProof(await alarmed(size, answer), size);
});

test("a quorum of the witnesses is not waited for, as for no other contradiction of what the log has signed", async () => {
  await expectProof(await alarmed(300, denial, undefined, "idle"), 300);
});

test("where the copy is damaged, too, the alarm is raised without a proof, unless the log helps out", async () => {
  const damage = (mirror: string) => {
    const tiles = readdirSync(join(mirror, "tile/0"), { recursive: true, encoding: "utf8" }).filter((name) =>
      /\d$/.test(name),
    );
    for (const name of tiles) writeFileSync(join(mirror, "tile/0", name), "damaged");
  };
  for (const [name, answer] of Object.entries(answers)) {
    const evidence = await alarmed(200, answer, damage);
    if (name === "truth") await expectProof(evidence, 200);
    else expect(evidence).not.toHaveProperty("end");
  }
});
