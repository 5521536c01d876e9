/**
 * Everything that changes files in an order that matters: its steps, as the kernel sees them, are those of the list, and where it
 * stops at one of them, nothing is lost, and the next run finishes.
 *
 * It is killed before a call of each step, which is after the step before it, and the call fails. Of all of these a seed chooses:
 * `STEPS=all` takes every one.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { anyEvent } from "../anyevent.js";
import { compileShim, type ErrorName } from "../faults/shim.js";
import { addPrivateRows, buildData, copyOf, newFolder, openData, removeFolders } from "../fsck/everykind.js";
import { Random } from "../reliability/random.js";
import { startTestService } from "../server/harness.js";
import { cairnlog, scratchFolder } from "../service.js";
import { type Found, PROTOCOLS, type Protocol, type Sources } from "./protocols.js";
import { type Step, type Stop, stepsOf } from "./stepping.js";

const random = new Random(Number(process.env.TEST_SEED ?? 1));
/** Stops of each protocol: of those before a file gets or loses its name, and of the others. */
const STOPS = process.env.STEPS === "all" ? Number.POSITIVE_INFINITY : 1;
const AT_ONCE = 2;
const ERRORS: readonly ErrorName[] = ["EIO", "ENOSPC"];

const folder = scratchFolder();
const pool = createPool(1);
let library: string;
let sources: Sources;

beforeAll(async () => {
  library = compileShim(folder.path);
  const data = await buildData(pool, 8);
  const later = copyOf(data);
  const grown = await openData(later, pool);
  await grown.log.append([1, 2].map((n) => anyEvent({ n })));
  await grown.close();
  const accounts = newFolder();
  const empty = await openData(accounts, pool);
  // What it cannot add to a log without entries is not needed.
  await addPrivateRows(empty).catch(() => {});
  await empty.close();
  const [backup, monitored, tiled] = ["backup", "monitored", "tiled"].map((name) => join(folder.path, name));
  await cairnlog(["backup", "--data", data, "--to", backup!]);

  const service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  const grow = async (count: number) => {
    const { log } = service.server.registry;
    await log.append(Array.from({ length: count }, (_, i) => anyEvent({ i })));
    await service.checkpointed(log.size);
  };
  // Then more, with which a tile becomes full.
  await grow(250);
  const vkey = (await service.send("GET", "/tlog/vkey")).text.trim();
  await cairnlog(["monitor", service.url, "--state", monitored!, "--once"]);
  await cairnlog(["monitor", `${service.url}/tlog`, "--state", tiled!, "--once", "--vkey", vkey]);
  await grow(20);
  sources = {
    pool,
    data,
    later,
    accounts,
    backup: backup!,
    monitored: monitored!,
    tiled: tiled!,
    url: service.url,
    vkey,
  };
});
afterAll(async () => {
  removeFolders();
  await pool.close();
  folder.remove();
});

let roots = 0;
async function newRoot({ prepare }: Protocol): Promise<string> {
  const root = join(folder.path, `${++roots}`);
  mkdirSync(root);
  await prepare(sources, root);
  return root;
}

/** What is found in a copy: looking may change it. A path of its own: LMDB knows an open file by its name. */
async function looked({ look }: Protocol, root: string): Promise<Found> {
  const copy = join(folder.path, `${++roots}`);
  cpSync(root, copy, { recursive: true });
  try {
    return await look(sources, copy);
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** LMDB's lock files; and postings, which the next start makes where there are none. */
const PASSING = /lock\.mdb$|\/running$|\/postings\/data\.mdb$/;

/** All files, as steps name them, with the content of those that hold keys. */
function filesIn({ left }: Protocol, root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      const plain = relative(root, path).replace(/(?<![0-9a-z])[0-9a-f]{4,}(?![0-9a-z])|\d+/g, "N");
      return name.endsWith(".pem") ? `${plain}: ${readFileSync(path, "utf8")}` : plain;
    })
    .filter((file) => !PASSING.test(file) && !left?.test(file))
    .sort();
}

/** A whole run: its steps, and what it leaves. */
interface Whole {
  readonly steps: readonly Step[];
  readonly before: Found;
  readonly after: Found;
  readonly files: readonly string[];
}

async function wholeRun(protocol: Protocol): Promise<Whole> {
  const root = await newRoot(protocol);
  const before = await looked(protocol, root);
  const { code, stderr, calls } = await protocol.run(sources, { library, root });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const steps = stepsOf(calls, protocol.seen);
  return { steps, before, after: await looked(protocol, root), files: filesIn(protocol, root) };
}

/** Of all that a stop could be, what the seed chooses. */
function stopsAt(steps: readonly Step[]): Stop[] {
  const naming: Stop[] = [];
  const others: Stop[] = [];
  for (const { name, calls } of steps) {
    if (!calls.length) continue;
    const [first, last, any] = [calls[0]!, calls.at(-1)!, random.pick(calls)];
    (/^(?:rename|link|unlink) /.test(name) ? naming : others).push({ ...first, error: "killed" });
    if (last !== first) others.push({ ...last, error: "killed" });
    others.push({ ...any, error: random.pick(ERRORS) });
  }
  for (const stops of [naming, others]) while (stops.length > STOPS) stops.splice(random.below(stops.length), 1);
  return [...naming, ...others];
}

/** @returns what is wrong, in sentences */
async function stopped(protocol: Protocol, whole: Whole, stop: Stop): Promise<string[]> {
  const root = await newRoot(protocol);
  const run = await protocol.run(sources, { library, root, stop });
  const found = await looked(protocol, root);
  const { before, after } = whole;
  const judge = protocol.judge ?? neither;
  const wrong = [...judge(found, run, before, after)];
  // Another run may write less; then there was no such call.
  if (run.isReached && stop.error === "killed" && run.code !== null) wrong.push("it was not killed");
  if (run.code === 0 && !protocol.judge && !isSame(found, after))
    wrong.push(`it says that it is done: ${spelled(found)}`);
  const again = await protocol.run(sources, { library, root });
  const end = await looked(protocol, root);
  const isDone = again.code === 0 || (isSame(end, after) && protocol.done?.test(again.stderr));
  if (!isDone) wrong.push(`the next run ends with ${again.code}: ${again.stderr}`);
  if (protocol.judge) wrong.push(...protocol.judge(end, again, before, after));
  if (!protocol.isOpenEnded && !isSame(end, after)) wrong.push(`after the next run: ${spelled(end)}`);
  const files = filesIn(protocol, root);
  const missing = whole.files.filter((file) => !files.includes(file));
  const more = files.filter((file) => !whole.files.includes(file));
  if (missing.length) wrong.push(`these files are missing: ${missing}`);
  if (more.length) wrong.push(`these files are left: ${more}`);
  rmSync(root, { recursive: true });
  return wrong.map((sentence) => `${stop.error} at ${stop.call} ${stop.path} (${stop.nth}): ${sentence}`);
}

const spelled = (found: Found): string => JSON.stringify(found);
const isSame = (one: Found, other: Found): boolean => spelled(one) === spelled(other);
const neither: NonNullable<Protocol["judge"]> = (found, _, before, after) =>
  isSame(found, before) || isSame(found, after) ? [] : [`it is neither as before nor done: ${spelled(found)}`];

describe.each(PROTOCOLS)("$name", (protocol) => {
  let whole: Whole;
  test("takes its steps in their order", async () => {
    whole = await wholeRun(protocol);
    const wanted = protocol.steps
      .split(/[\n,]/)
      .map((step) => step.trim())
      .filter(Boolean);
    const names = whole.steps.map(({ name }) => name);
    const taken = protocol.repeats ? names.filter((name, at) => names.lastIndexOf(name) === at) : names;
    expect(taken).toEqual(wanted);
  });

  test("may stop at any of them", async () => {
    const wrong: string[] = [];
    const stops = stopsAt(whole.steps);
    const next = async (): Promise<void> => {
      for (let stop = stops.shift(); stop; stop = stops.shift()) wrong.push(...(await stopped(protocol, whole, stop)));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
    expect(wrong).toEqual([]);
  });
});
