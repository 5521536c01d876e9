/**
 * `cairnlog publish --follow` is killed again and again, at its requests and between them. What is there after a kill is what an
 * undisturbed publisher has made, byte for byte, and all that the checkpoint covers; the next run goes on with it.
 *
 * `KILLS=100 npx vitest run --config test/vitest.long.config.ts test/publishing/killed.long.test.ts` kills each of them more often.
 */
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cairnlog } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner } from "../server/signers.js";
import { MAIN } from "../service.js";
import { LiveLog } from "./logs.js";
import { type Asked, before, type Pass } from "./proxy.js";
import { CREDENTIALS, Radosgw } from "./radosgw.js";

const KILLS = Number(process.env.KILLS ?? 5);
/** A folder is written between requests. */
const MOMENT_MS = 30;
const SIZES = [3, 256, 700] as const;

type Proxy = Parameters<typeof before>[1];

interface Place {
  readonly target: string;
  readonly options: readonly string[];
  read(path: string): Promise<Buffer | undefined>;
  paths(): Promise<readonly string[]>;
}

let store: Radosgw;
let log: LiveLog;
let vkey: string;
/** The log's checkpoints at these sizes. */
const notes: string[] = [];
/** What an undisturbed publisher has made when it has published each of them: by path. */
const made: (readonly (readonly [path: string, bytes: Buffer])[])[] = [];

beforeAll(async () => {
  const [ada, folder] = [newSigner(), folderPlace()];
  [store, log] = await Promise.all([Radosgw.start(), LiveLog.start(0)]);
  await log.register(ada, "Ada");
  for (const size of SIZES) {
    await log.attest(ada, newManifest());
    await log.grow(size);
    notes.push((await log.service.send("GET", "/tlog/checkpoint")).text);
  }
  vkey = await log.vkey();
  for (const note of notes) {
    await publishUndisturbed(folder, note);
    made.push(await everything(folder));
  }
});
afterAll(() => store?.stop());

function folderPlace(): Place {
  const target = temporaryFolder();
  const at = (path: string) => join(target, path);
  return {
    ...{ target, options: [target, "--entries"] },
    read: async (path) => (existsSync(at(path)) ? readFileSync(at(path)) : undefined),
    paths: async () =>
      readdirSync(target, { recursive: true, encoding: "utf8" }).filter(
        (path) => !path.startsWith(".drafts") && statSync(at(path)).isFile(),
      ),
  };
}

/** @param endpoint of the store, or of what stands before it */
function bucketPlace(prefix: string, endpoint: string): Place {
  const target = `s3://logs/${prefix}`;
  return {
    ...{ target, options: [target, "--entries", "--endpoint", endpoint] },
    async read(path) {
      const found = await store.ask("GET", `/${prefix}/${path}`);
      return found.ok ? Buffer.from(await found.arrayBuffer()) : undefined;
    },
    async paths() {
      const listed = await (await store.ask("GET", `?list-type=2&prefix=${prefix}/`)).text();
      expect(listed).toContain("<IsTruncated>false</IsTruncated>");
      return [...listed.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key!.slice(prefix.length + 1));
    },
  };
}

async function everything(place: Place): Promise<[path: string, bytes: Buffer][]> {
  const paths = [...(await place.paths())].sort();
  return Promise.all(paths.map(async (path): Promise<[string, Buffer]> => [path, (await place.read(path))!]));
}

/** Answers as the log did when this was its newest checkpoint. */
async function answer(asked: Asked, pass: Pass, note: string, isAnswered = true): Promise<void> {
  if (asked.request.url !== "/tlog/checkpoint") return pass(asked, isAnswered);
  if (isAnswered) asked.response.end(note);
}

async function publishUndisturbed({ options }: Place, note: string): Promise<void> {
  const source = await before(log.service.url, (asked, pass) => answer(asked, pass, note));
  expect(await cairnlog(["publish", `${source}/tlog`, ...options], CREDENTIALS)).toMatchObject({ code: 0 });
}

/** Asserts that nothing is there that an undisturbed publisher would not have made, and all that the checkpoint covers. */
async function expectSound(place: Place, why: string): Promise<void> {
  const round = notes.indexOf((await place.read("checkpoint"))?.toString() ?? "");
  const there = new Map(await everything(place));
  const whole = new Map(made.at(-1)!);
  for (const [path, bytes] of there)
    if (path !== "checkpoint") expect(whole.get(path)?.equals(bytes), `${path} ${why}`).toBe(true);
  // The page is put after the checkpoint.
  const covered = (made[round] ?? []).filter(([path]) => !/^index\.html$|^explorer\//.test(path));
  for (const [path] of covered) expect(there.has(path), `${path} of ${round} ${why}`).toBe(true);
}

/**
 * Publishes from the first checkpoint to the last one by runs that are killed, and asserts that it comes to the same.
 * @param placeAt of the target, for a store that is asked through a proxy
 * @returns how many were killed, at most `most`
 */
async function throughKills(most: number, requests: number, placeAt: (proxy: Proxy) => Promise<Place>) {
  let [kills, round, left] = [0, 0, 0];
  let kill: () => unknown = () => {};
  const put = new Set<number>();
  const orKilled = async (asked: Asked, pass: Pass) => {
    // Nothing may be missing when the checkpoint was just put: that is tried once for each.
    const isCheckpoint = asked.request.method === "PUT" && asked.request.url!.endsWith("/checkpoint");
    const isDue = isCheckpoint && kills < most && !put.has(round);
    if (isDue) put.add(round);
    if (--left !== 0 && !isDue) return pass(asked);
    left = 0;
    // The request is lost, or its answer, or the kill comes a moment later.
    const isSent = isDue || randomInt(3) > 0;
    const isAnswered = !isDue && isSent && randomInt(2) > 0;
    if (isSent) await pass(asked, isAnswered);
    if (isAnswered) await sleep(randomInt(MOMENT_MS));
    kill();
  };
  const place = await placeAt(orKilled);
  const source = await before(log.service.url, async (asked, pass) => {
    const isPublished = async () => (await place.read("checkpoint"))?.toString() === notes[round];
    if (asked.request.url === "/tlog/checkpoint" && (await isPublished()) && ++round === notes.length) return kill();
    await orKilled(asked, (one, isAnswered) => answer(one, pass, notes[round]!, isAnswered));
  });
  while (round < notes.length) {
    const at = kills < most ? 1 + randomInt(requests) : Number.POSITIVE_INFINITY;
    left = at;
    const args = ["publish", `${source}/tlog`, ...place.options, "--follow", "--interval", "1", "--vkey", vkey];
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { ...process.env, ...CREDENTIALS },
      stdio: ["ignore", "ignore", "pipe"],
    });
    kill = () => child.kill("SIGKILL");
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    expect(await once(child, "close"), said).toEqual([null, "SIGKILL"]);
    if (left <= 0) kills++;
    await expectSound(place, `after request ${at} of ${place.target}`);
  }
  left = Number.POSITIVE_INFINITY;
  // The last one may have been killed before it has put the page.
  await publishUndisturbed(place, notes.at(-1)!);
  expect(await everything(place)).toEqual(made.at(-1));
  return kills;
}

test(`after ${KILLS} kills each, a folder and a bucket are what an undisturbed publisher makes`, async () => {
  const folders = async () => {
    for (let kills = 0; kills < KILLS; ) kills += await throughKills(KILLS - kills, 20, async () => folderPlace());
  };
  const buckets = async () => {
    for (let [kills, number] = [0, 1]; kills < KILLS; number++)
      kills += await throughKills(KILLS - kills, 60, async (proxy) =>
        bucketPlace(`killed-${number}`, await before(store.url, proxy)),
      );
  };
  await Promise.all([folders(), buckets()]);
});
