/** Lines where a write takes a part of a line, or nothing: none is mixed with another, and each is written or counted. */
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { LineOutput } from "#cairnlog/server/process/stderr.js";
import { scratchFolder } from "../../service.js";
import { until } from "../sockets.js";

const STDERR = import.meta.resolve("#cairnlog/server/process/stderr.js");
const folder = scratchFolder();
afterAll(() => folder.remove());

/** Lines of every length around what a pipe takes at once (4,096 bytes), each with its number. */
const lineOf = (number: number) => `${number} ${"x".repeat((number * 997) % 9_000)}\n`;

test("a pipe that is read too late has whole lines, in order; those that it lacks are counted", async () => {
  const path = join(folder.path, "pipe");
  execFileSync("mkfifo", [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const output = new LineOutput(() => fd);
  const chunk = Buffer.alloc(50_000);
  let read = "";
  const take = () => {
    try {
      read += chunk.toString("latin1", 0, readSync(fd, chunk));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe("EAGAIN");
    }
  };
  const count = 500;
  for (let number = 0; number < count; number++) {
    output.write(lineOf(number));
    if (number % 20 === 0) take();
  }
  // What waits is written by itself.
  await until(() => {
    take();
    return read.split("\n").length - 1 + output.dropped.total === count && output.flush();
  });
  closeSync(fd);
  const lines = read.split("\n").slice(0, -1);
  expect(output.dropped.total).toBeGreaterThan(0);
  const numbers = lines.map((line) => Number.parseInt(line, 10));
  expect(lines).toEqual(numbers.map((number) => lineOf(number).slice(0, -1)));
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
});

test("a pipe that stands still again and again loses nothing as long as what waits is not too much at a time", () => {
  const path = join(folder.path, "stalled");
  execFileSync("mkfifo", [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const output = new LineOutput(() => fd);
  const chunk = Buffer.alloc(100_000);
  let bytes = 0;
  for (let stall = 0; stall < 8; stall++) {
    // More than a pipe takes, and less than may wait.
    for (let i = 0; i < 25; i++) output.write(`${"x".repeat(7_999)}\n`);
    for (let isDone = false; !isDone; isDone = output.flush()) bytes += readSync(fd, chunk);
    bytes += readSync(fd, chunk);
  }
  closeSync(fd);
  expect([output.dropped.total, bytes]).toEqual([0, 8 * 25 * 8_000]);
});

test("a line that a full disk has cut off does not become the beginning of the next one", () => {
  const path = join(folder.path, "file");
  // A limit of the length of files stands for the full disk: it takes a part of a line, then none.
  const program = `
    const { LineOutput } = await import(${JSON.stringify(STDERR)});
    const { ftruncateSync, openSync, statSync } = await import("node:fs");
    const fd = openSync(${JSON.stringify(path)}, "a");
    const output = new LineOutput(() => fd);
    while (output.dropped.total < 2) output.write("x".repeat(300) + "\\n");
    ftruncateSync(fd, statSync(${JSON.stringify(path)}).size - 50);
    output.write("whole\\n");
    console.log(output.dropped.total);`;
  const limited = 'ulimit -f 8; exec "$@"';
  const node = [process.execPath, "--input-type=module", "-e", program];
  expect(execFileSync("sh", ["-c", limited, "sh", ...node], { encoding: "utf8" })).toBe("2\n");
  const lines = readFileSync(path, "utf8").split("\n");
  expect(lines.slice(-2)).toEqual(["whole", ""]);
  for (const line of lines.slice(0, -3)) expect(line).toBe("x".repeat(300));
});
