/** The progress of long work: an occasional line, or a bar on a terminal. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { formatBytes, startProgress } from "#cairnlog/server/cli/terminal/progress.js";

let written: string[];
let wasTerminal: boolean;
beforeEach(() => {
  written = [];
  wasTerminal = process.stderr.isTTY;
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000 });
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    written.push(String(text));
    return true;
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  process.stderr.isTTY = wasTerminal;
});
const pass = (ms: number) => vi.setSystemTime(Date.now() + ms);

describe("elsewhere than on a terminal", () => {
  beforeEach(() => {
    process.stderr.isTTY = false;
  });

  test("a line every five seconds, and no sooner", () => {
    const progress = startProgress("Reading:", 8);
    progress.update(1);
    pass(4_999);
    progress.update(2);
    expect(written).toEqual([]);
    pass(1);
    progress.update(3);
    pass(4_999);
    progress.update(4);
    pass(1);
    progress.update(8);
    progress.end();
    expect(written).toEqual(["Reading: 3 of 8 (37 %)\n", "Reading: 8 of 8 (100 %)\n"]);
  });

  test("without a share where the whole is not known, and never more than all", () => {
    const open = startProgress("Reading:", null, (amount) => `<${amount}>`);
    const closed = startProgress("Reading:", 4, (amount) => `<${amount}>`);
    const nothing = startProgress("Reading:", 0);
    pass(5_000);
    open.update(7);
    closed.update(5);
    nothing.update(0);
    expect(written).toEqual(["Reading: <7>\n", "Reading: <5> of <4> (100 %)\n", "Reading: 0 of 0 (100 %)\n"]);
  });
});

test("the name of a file steers no terminal, and makes no line of its own", () => {
  for (const isTerminal of [false, true]) {
    process.stderr.isTTY = isTerminal;
    const progress = startProgress("Hashing \u001b]0;title\u0007\u009b2J\u202ea\nverified:", 8);
    pass(5_000);
    progress.update(4);
  }
  const shown = written.map((text) => text.replace("\r\u001b[K", "").trimEnd());
  expect(shown).toHaveLength(2);
  for (const text of shown) expect(text).toMatch(/^[^\p{C}]*$/u);
});

describe("on a terminal", () => {
  beforeEach(() => {
    process.stderr.isTTY = true;
  });

  test("a bar that is drawn ten times a second, and removed at the end", () => {
    const progress = startProgress("Reading:", 10);
    pass(99);
    progress.update(1);
    progress.end();
    expect(written).toEqual([]);
    pass(1);
    progress.update(5);
    pass(100);
    progress.update(10);
    progress.end();
    const bar = (filled: number) => `[${"#".repeat(filled)}${"-".repeat(30 - filled)}]`;
    expect(written).toEqual([
      `\r\x1b[K${bar(15)} Reading: 5 of 10 (50 %)`,
      `\r\x1b[K${bar(30)} Reading: 10 of 10 (100 %)`,
      "\r\x1b[K",
    ]);
  });

  test("no bar where the whole is not known", () => {
    const progress = startProgress("Reading:", null);
    pass(100);
    progress.update(3);
    expect(written).toEqual(["\r\x1b[KReading: 3"]);
  });
});

test.each([
  [0, "0 bytes"],
  [999, "999 bytes"],
  [1_000, "1.0 KB"],
  [1_536, "1.5 KB"],
  [999_999, "1000.0 KB"],
  [1_000_000, "1.0 MB"],
  [2_500_000_000, "2.5 GB"],
  [1e12, "1.0 TB"],
  [1e15, "1000.0 TB"],
])("%d bytes are %s", (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});
