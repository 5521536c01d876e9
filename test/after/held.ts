/**
 * What the product holds in this process: timers, also those that keep no process alive, sockets, ports, threads, and file
 * descriptors. Of a timer it knows the file that began it and the time that was asked for.
 */
import { createHook } from "node:async_hooks";
import { readdirSync, readlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll } from "vitest";

const KINDS = new Set([
  ...["Timeout", "TCPWRAP", "TCPSERVERWRAP", "TLSWRAP", "PIPEWRAP", "PIPESERVERWRAP", "UDPWRAP"],
  ...["FSEVENTWRAP", "STATWATCHER", "PROCESSWRAP"],
]);
/** Frames of a stack that are looked at for the file of the product. */
const FRAMES = 40;
const OWN = /\/dist\/((?:engine|server)\/[^\s:)]+)\.js/;
/** Threads are counted by the system: Node forgets those that have ended only with the next collection of garbage. */
const THREAD = new Set(["WORKER"]);
const LIBRARY = /\/node_modules\/(piscina|lmdb|pg|undici)\//;

interface Resource {
  readonly kind: string;
  /** Source file of the product, or library, that made it. */
  readonly owner: string;
}

/** A timer that was begun. */
export interface Begun {
  readonly owner: string;
  readonly milliseconds: number;
}

const live = new Map<number, Resource>();
/** Every timer since the last `forgetBegun`, in order. */
let begun: Begun[] = [];
/** Every owner of anything since `forgetMakers`. */
let makers = new Set<string>();

function ownerHere(): string | null {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = FRAMES;
  const { stack = "" } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  const file = OWN.exec(stack)?.[1];
  return file === undefined ? (LIBRARY.exec(stack)?.[1] ?? null) : `${file}.ts`;
}

const hook = createHook({
  init(id, kind, _, resource) {
    if (!KINDS.has(kind) && !THREAD.has(kind)) return;
    const owner = ownerHere();
    if (owner === null) return;
    makers.add(owner);
    if (THREAD.has(kind)) return;
    live.set(id, { kind, owner });
    if (kind === "Timeout") begun.push({ owner, milliseconds: (resource as { _idleTimeout: number })._idleTimeout });
  },
  destroy: (id) => void live.delete(id),
});

/** Has this file's tests see what is made from now on. */
export function watchResources(): void {
  beforeAll(async () => {
    // The threads of Node's own pool begin with the first work for each of them.
    await Promise.all(Array.from({ length: 64 }, () => readFile(new URL(import.meta.url))));
    hook.enable();
  });
  afterAll(() => {
    hook.disable();
    live.clear();
  });
}

/** What is held now, one line for each thing, sorted. */
export function held(): string[] {
  const resources = [...live.values()].map(({ kind, owner }) => `${kind} of ${owner}`);
  const threads = readdirSync("/proc/self/task").map(() => "thread");
  const ports = process.getActiveResourcesInfo().filter((kind) => kind === "MessagePort");
  return [...resources, ...threads, ...ports, ...descriptors()].sort();
}

/** What `now` has and `before` has not. */
export function added(now: readonly string[], before: readonly string[]): string[] {
  const left = [...before];
  return now.filter((line) => {
    const at = left.indexOf(line);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

/** Timers of a source file that were begun since `forgetBegun`, by their milliseconds. */
export const begunBy = (owner: string): number[] =>
  begun.filter((timer) => timer.owner === owner).map(({ milliseconds }) => milliseconds);

export function forgetBegun(): void {
  begun = [];
}

/** The source files that made something since the last call. */
export function takeMakers(): ReadonlySet<string> {
  const taken = makers;
  makers = new Set();
  return taken;
}

function descriptors(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      // Numbers in brackets name one socket or pipe; how many there are is what counts.
      return [`descriptor of ${readlinkSync(`/proc/self/fd/${fd}`).replace(/\[\d+\]/, "")}`];
    } catch {
      // The one with which the folder was read.
      return [];
    }
  });
}
