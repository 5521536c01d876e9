/**
 * Loaded into a service under test (`--import`), and so into each of its threads. Measures every turn of a thread's event
 * loop by the processor time of that thread, so that other work of the machine does not count. The kernel brings the time of a
 * running thread up to date with each of its ticks, so a figure may be a tick (1 to 4 ms) too high or too low.
 *
 * Each thread listens in the folder TURNS. It answers each line with the longest turn since the last line, as one line of JSON.
 * With TURNS_PROFILE, it also says which functions were on the stack in that turn.
 */
import { mkdirSync, openSync, readSync } from "node:fs";
import { Session } from "node:inspector";
import { createServer } from "node:net";
import { basename, dirname, join } from "node:path";
import { isMainThread, threadId } from "node:worker_threads";

/** Microseconds between two samples of the profile. */
const SAMPLING_US = 500;
/** Number of functions that are named. */
const FUNCTIONS = 25;

const folder = process.env.TURNS;
const module = process.argv[1] ?? "worker";
/** A worker thread is called by the folder of its module. */
const name = isMainThread ? "main" : `${basename(dirname(module))}-${threadId}`;
/** A thread of the pool waits for its next task outside of its loop. It could not answer, and nobody waits for its loop. */
const isPool = !isMainThread && module.includes("piscina");

const clock = openSync("/proc/thread-self/schedstat", "r");
const text = Buffer.alloc(64);

/** Nanoseconds of processor time of this thread. */
function busy() {
  const length = readSync(clock, text, 0, text.length, 0);
  let value = 0;
  for (let at = 0; at < length && text[at] !== 32; at++) value = value * 10 + text[at] - 48;
  return value;
}

const micros = () => Number(process.hrtime.bigint() / 1000n);
const none = { nanoseconds: 0, from: 0, to: 0 };
let longest = none;
let count = 0;
let before = busy();
let began = micros();

// The loop runs this once in each of its turns. An immediate without a reference does not keep it from sleeping.
function turn() {
  const now = busy();
  const ended = micros();
  count++;
  if (now - before > longest.nanoseconds) longest = { nanoseconds: now - before, from: began, to: ended };
  before = now;
  began = ended;
  setImmediate(turn).unref();
}

const profiler = process.env.TURNS_PROFILE ? new Session() : null;
/** Sends a command to V8. It answers before this returns. */
function command(method, parameters) {
  let result;
  profiler.post(`Profiler.${method}`, parameters, (error, answer) => {
    if (error) throw new Error(error.message);
    result = answer;
  });
  return result;
}

/** The functions on the stack between two moments, and for how many milliseconds each. */
function stackBetween({ from, to }) {
  const { profile } = command("stop");
  const parents = new Map();
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  for (const node of profile.nodes) for (const child of node.children ?? []) parents.set(child, node.id);
  const spent = new Map();
  let at = profile.startTime;
  profile.samples.forEach((id, n) => {
    const delta = profile.timeDeltas[n];
    at += delta;
    if (at < from || at > to) return;
    const seen = new Set();
    for (let node = id; node !== undefined; node = parents.get(node)) {
      const { functionName, url, lineNumber } = nodes.get(node).callFrame;
      seen.add(`${functionName || "(anonymous)"} ${url.split("/").slice(-3).join("/")}:${lineNumber + 1}`);
    }
    for (const one of seen) spent.set(one, (spent.get(one) ?? 0) + delta / 1000);
  });
  command("start");
  return [...spent].sort(([, a], [, b]) => b - a).slice(0, FUNCTIONS);
}

function answer() {
  const { nanoseconds } = longest;
  const stack = profiler ? stackBetween(longest) : [];
  const line = JSON.stringify({ thread: name, milliseconds: nanoseconds / 1e6, count, stack });
  longest = none;
  count = 0;
  // What the answer itself took is not the service's.
  before = busy();
  began = micros();
  return `${line}\n`;
}

function listen() {
  if (profiler) {
    profiler.connect();
    command("enable");
    command("setSamplingInterval", { interval: SAMPLING_US });
    command("start");
  }
  mkdirSync(folder, { recursive: true });
  setImmediate(turn).unref();
  createServer((socket) => {
    socket.on("data", () => socket.write(answer())).on("error", () => {});
    socket.unref();
  })
    .listen(join(folder, `${process.pid}.${threadId}`))
    .unref();
}

if (!isPool) listen();
